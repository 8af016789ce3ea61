"""`docs/resume.md` says of a refused resume what the types and the client say."""

from __future__ import annotations

import re

import pytest
from scripts.generate_docs import DOCS

from omniduplex.clients.reconnect import FATAL_CODES
from omniduplex.protocol.duplex import ERROR_KINDS

PAGE = (DOCS / "resume.md").read_text("utf-8")
ROWS: list[tuple[str, str]] = re.findall(r"^\| 1008 \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
VERDICTS = {
    str(code): verdict for codes, verdict in ROWS for code in re.findall(r"`([a-z_]+)`", codes)
}
REFUSALS = re.findall(
    r"`([a-z]+(?:_[a-z]+)+)`", PAGE.split("refuses with an `error`")[1].split("\n\n")[1]
)


def test_every_refusal_of_the_page_is_a_code() -> None:
    assert len(REFUSALS) >= 7
    assert set(REFUSALS) | VERDICTS.keys() <= ERROR_KINDS.keys() | {"journal_gap"}


@pytest.mark.parametrize("code", sorted({*REFUSALS, *VERDICTS, *FATAL_CODES} - {"journal_gap"}))
def test_what_is_final_for_the_client_is_final_on_the_page(code: str) -> None:
    verdict = VERDICTS.get(code) or dict(ROWS)["another code"]
    assert verdict.startswith("no" if code in FATAL_CODES else "yes")
    assert ERROR_KINDS[code].retryable == (code not in FATAL_CODES)
