"""What a client writes is in no metric, wherever it writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.talk import TIMEOUT_S, Talk

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = pytest.mark.e2e

MARK = "zqx"
"""In no name of ours."""

COMMANDS: tuple[tuple[str, dict[str, Any]], ...] = (
    (MARK, {}),
    ("session.update", {"session": {"instructions": MARK, "voice": MARK, MARK: MARK}}),
    ("session.update", {"session": {"turn_detection": {"type": MARK}}}),
    ("input_audio_buffer.append", {"audio": "", "input_audio_format": MARK, "transcript": MARK}),
    ("conversation.item.create", {"item": {"id": MARK, "type": "message", "role": MARK}}),
    ("conversation.item.delete", {"item_id": MARK}),
    ("turn.signal", {"event": MARK, "payload": {MARK: MARK}}),
    ("response.create", {"response": {"instructions": MARK, "metadata": {MARK: MARK}}}),
    ("response.cancel", {"response_id": MARK}),
    ("playback.ack", {"response_id": MARK, "played_ms": 1}),
    ("session.resume", {"session_id": MARK, "resume_token": MARK}),
    ("session.close", {"reason": MARK}),
)


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    with DuplexOmni("omniduplex/echo") as omni:
        yield omni


@pytest.fixture
def base(omni: DuplexOmni, serve_app: ServeApp) -> str:
    return serve_app(create_app(omni))


def exposition(base: str) -> str:
    with urlopen(f"{base}/metrics", timeout=TIMEOUT_S) as answer:
        return str(answer.read(), "utf-8")


def closed_by_client(base: str) -> float:
    name = r'^omniduplex_sessions_closed_total\{reason="client_close"\} (\S+)$'
    found = re.search(name, exposition(base), re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("path", [f"/v1/duplex?model={MARK}", f"/v1/realtime?model={MARK}"])
def test_what_a_client_writes_is_in_no_metric(base: str, path: str) -> None:
    before = closed_by_client(base)
    with Talk(base, path) as talk:
        for wire_type, fields in COMMANDS:
            talk.send(wire_type, event_id=MARK, **fields)
        events, code, reason = talk.ends()

    assert {event["type"] for event in events} >= {"session.created", "error"}
    assert (code, reason) == (1000, MARK)
    assert closed_by_client(base) == before + 1
    assert MARK not in exposition(base)


@pytest.mark.parametrize("path", [f"/v1/{MARK}", f"/v1/models?{MARK}", f"/{MARK}"])
def test_nor_is_what_it_asks_for(base: str, path: str) -> None:
    try:
        urlopen(Request(base + path, headers={MARK: MARK}), timeout=TIMEOUT_S).close()
    except HTTPError as refused:
        refused.close()
    assert MARK not in exposition(base)
