"""Clients that ask, and read no answer: they hold neither their turn nor their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import openai
import pytest
from tests.engine.stage_models import Loud, Words
from tests.entrypoints.running import RunningServer, running
from tests.entrypoints.turn.watched import MODEL, WAIT_S, WatchedOmni, asking, one_turn_at_a_time
from tests.reliability.processes import comes_true

from omniduplex.entrypoints.openai.departures import DepartingProtocol
from omniduplex.entrypoints.openai.turn_app import create_turn_app
from omniduplex.stages.messages import StageInput, StageMessage, StageOutput

SOON_S = 0.05
# More than the kernel keeps for a connection on the loopback, less than a turn may leave unread.
CHUNKS, CHUNK_CHARS = 24, 1024 * 1024


class Talkative(Words):
    """Has much to say to "much", and to "for ever" besides no end of it."""

    def step(self, batch: Sequence[StageMessage]) -> None:
        for message in batch:
            if isinstance(message, StageInput) and message.text in ("much", "for ever"):
                for left in reversed(range(CHUNKS)):
                    ends = message.text == "much" and not left
                    self.emit(
                        StageOutput(message.request_id, text="x" * CHUNK_CHARS, finished=ends)
                    )
            else:
                super().step([message])


@pytest.fixture
def omni() -> Iterator[WatchedOmni]:
    """Takes one turn at a time."""
    with WatchedOmni(one_turn_at_a_time(Talkative, Loud)) as omni:
        yield omni


@pytest.fixture
def server(omni: WatchedOmni) -> Iterator[RunningServer]:
    with running(create_turn_app(omni)) as server:
        yield server


@pytest.mark.parametrize(("text", "stream"), [("for ever", True), ("much", True), ("much", False)])
def test_who_reads_no_answer_makes_room_for_the_next(
    omni: WatchedOmni,
    server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    stream: bool,
) -> None:
    monkeypatch.setattr(DepartingProtocol, "send_timeout_s", SOON_S)
    with asking(server.base, text, stream=stream):
        assert omni.ended.wait(WAIT_S)
        assert asyncio.run(omni.active_turn_count()) == 0
        assert comes_true(lambda: server.connections == 0)
        with openai.OpenAI(base_url=f"{server.base}/v1", api_key="x", max_retries=0) as client:
            answer = client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "me"}]
            )
        assert answer.choices[0].message.content == "ME"


def test_who_reads_has_the_whole_answer(server: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{server.base}/v1", api_key="x", max_retries=0) as client:
        answer = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "much"}]
        )
    assert answer.choices[0].message.content == "X" * CHUNK_CHARS * CHUNKS
