"""The error table knows every code that the source raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from omniduplex.protocol.duplex import (
    ENDINGS,
    ERROR_KINDS,
    OPENAI_CODES,
    DuplexError,
    codec,
    errors,
    failure_kind,
)
from omniduplex.protocol.duplex.errors import SAID_ELSEWHERE

SOURCE = Path(__file__).parents[3] / "src" / "omniduplex"


def raised_codes() -> Iterator[tuple[str, str]]:
    """Yield every literal error code: what a `DuplexError` is made with, and any `code=`."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            codes = [word.value for word in node.keywords if word.arg == "code"]
            if is_duplex_error(node.func):
                codes += node.args[:1]
            for code in codes:
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}", code.value


def is_duplex_error(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr == "DuplexError"
    return isinstance(function, ast.Name) and function.id == "DuplexError"


def test_every_raised_code_is_in_the_table() -> None:
    raised = list(raised_codes())
    assert len(raised) > 10
    assert [where for where, code in raised if code not in ERROR_KINDS] == []
    assert {*codec.FIELD_CODES.values(), *codec.COMMAND_CODES.values()} <= set(ERROR_KINDS)


def test_the_page_marks_the_codes_that_only_others_say() -> None:
    own = {
        node.value
        for path in SOURCE.rglob("*.py")
        if path != Path(errors.__file__)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(ERROR_KINDS) - own == SAID_ELSEWHERE


def test_the_openai_names_rename_codes_that_exist() -> None:
    assert set(OPENAI_CODES) <= set(ERROR_KINDS)
    assert not set(OPENAI_CODES.values()) & set(ERROR_KINDS)


def test_a_code_that_is_not_in_the_table_refuses_a_request_or_is_a_responses_own_fault() -> None:
    kind = DuplexError("a_plugins_own", "oops").kind
    assert (kind.error_class, kind.retryable) == ("invalid_request_error", False)
    assert failure_kind("a_plugins_own").error_class == "server_error"


def test_every_code_has_a_meaning_of_its_own_in_one_sentence() -> None:
    meanings = [kind.meaning for kind in ERROR_KINDS.values()]

    assert len(set(meanings)) == len(ERROR_KINDS)
    assert [text for text in meanings if not text.endswith(".") or "\n" in text] == []


def test_every_close_reason_fits_a_close_frame() -> None:
    assert {ending.close_code for ending in ENDINGS} == {1000, 1001, 1007, 1008, 1009, 1011}
    assert all(len(ending.reason.encode()) <= 123 for ending in ENDINGS)
