"""The generated pages are those that the types of today give, and say what is true."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from scripts.generate_docs import DOCS, PAGES, dialects_of, errors_page, tier, wire_page
from tests.protocol.duplex.samples import samples
from websockets.frames import CloseCode

from omniduplex.entrypoints.duplex.attachment import SHUTDOWN, close_code
from omniduplex.entrypoints.duplex.websocket import (
    INTERNAL_ERROR,
    NORMAL_CLOSURE,
    POLICY_VIOLATION,
)
from omniduplex.entrypoints.openai.server import MAX_FRAME_BYTES
from omniduplex.protocol.duplex import (
    ENDINGS,
    ERROR_KINDS,
    AppendAudio,
    Dialect,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    Heartbeat,
    RetrieveItem,
    SessionClosed,
    SessionPatch,
    decode_command,
    project,
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_types_give(name: str) -> None:
    written = (DOCS / name).read_text("utf-8")

    assert written == PAGES[name](), f"docs/{name} is stale: run `make docs`"


def test_every_event_has_a_section_and_every_error_a_row() -> None:
    headings = re.findall(r"^### `(.+)`$", wire_page(), re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \|", errors_page(), re.MULTILINE)

    events = [*get_args(DuplexCommand), *get_args(DuplexEvent)]
    assert headings == [event.__struct_config__.tag for event in events]
    assert rows == list(ERROR_KINDS)


def test_every_field_of_a_session_is_told_with_its_default() -> None:
    section = wire_page().partition("## Session fields of a client")[2].partition("## Session")[0]

    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == list(SessionPatch.__struct_fields__)
    assert "| `speed` | number or null | absent |" in section


def test_every_link_inside_a_page_leads_to_a_heading_of_it() -> None:
    page = wire_page()
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}

    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= anchors


def test_the_page_knows_which_events_the_openai_dialect_shows() -> None:
    for event in samples(Dialect.OPENAI):
        shown = {"OpenAI": Dialect.OPENAI, "beta": Dialect.BETA, "duplex": Dialect.DUPLEX}
        assert dialects_of(type(event)) == tuple(
            name for name, dialect in shown.items() if project(event, dialect) is not None
        )


def test_tiers_tell_what_is_official_and_what_is_ours() -> None:
    assert [tier(kind) for kind in (RetrieveItem, AppendAudio, Heartbeat)] == [1, 2, 3]


def test_the_close_codes_are_those_of_the_server() -> None:
    reasons = (SHUTDOWN, "client_close", "internal_error")
    closed = [
        close_code(SessionClosed(session_id="s", epoch=0, reason=reason)) for reason in reasons
    ]

    told = {(ending.close_code, ending.reason) for ending in ENDINGS}
    assert {*zip(closed, reasons, strict=True)} <= told
    ours = {*closed, NORMAL_CLOSURE, POLICY_VIOLATION, INTERNAL_ERROR}
    theirs = {CloseCode.INVALID_DATA, CloseCode.MESSAGE_TOO_BIG}  # of the WebSocket itself
    assert {code for code, _ in told} == ours | theirs
    (too_big,) = (one for one in ENDINGS if one.close_code == CloseCode.MESSAGE_TOO_BIG)
    assert f"({MAX_FRAME_BYTES // 1024**2} MiB)" in too_big.when


def test_unknown_keys_of_a_session_are_ignored_but_for_its_turn_detection() -> None:
    def update(session: str) -> DuplexCommand:
        return decode_command(f'{{"type": "session.update", "session": {session}}}')

    assert update('{"colour": "red"}') == update("{}")
    with pytest.raises(DuplexError) as refused:
        update('{"turn_detection": {"type": "server_vad", "colour": "red"}}')
    assert refused.value.code == "unsupported_turn_detection"
