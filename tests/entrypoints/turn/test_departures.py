"""Clients that ask, and read no answer: they hold neither their turn nor their connection."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager

import openai
import pytest
from tests.engine.stage_models import Loud, Words
from tests.entrypoints.running import RunningServer, running
from tests.reliability.processes import comes_true

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.turns import TurnChunk, TurnRequest
from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.openai.departures import DepartingProtocol
from omniduplex.entrypoints.openai.turn_app import create_turn_app
from omniduplex.stages.messages import StageInput, StageMessage, StageOutput

WAIT_S = 60
SOON_S = 0.05
# More than the kernel keeps for a connection on the loopback, less than a turn may leave unread.
CHUNKS, CHUNK_CHARS = 24, 1024 * 1024
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


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


class WatchedOmni(AsyncOmni):
    """Tells when a turn is over for its reader."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        self.ended = threading.Event()
        super().__init__(pipeline=pipeline)

    async def generate(self, request: TurnRequest) -> AsyncGenerator[TurnChunk, None]:
        try:
            async with aclosing(super().generate(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self.ended.set()


@pytest.fixture
def omni() -> Iterator[WatchedOmni]:
    """Takes one turn at a time."""
    stages = tuple(
        StageConfig(
            stage_id=index,
            name=model.__name__,
            model_class=f"{model.__module__}:{model.__name__}",
            worker="inline",
        )
        for index, model in enumerate((Talkative, Loud))
    )
    pipeline = PipelineConfig(
        name="words",
        model="words",
        stages=stages,
        turn_plugin="tests.engine.stage_models:ForwardPlugin",
        session_mode="turn",
        max_turns=1,
    )
    with WatchedOmni(pipeline) as omni:
        yield omni


@pytest.fixture
def server(omni: WatchedOmni) -> Iterator[RunningServer]:
    with running(create_turn_app(omni)) as server:
        yield server


@contextmanager
def asking(server: RunningServer, text: str, *, stream: bool) -> Iterator[socket.socket]:
    """Somebody who asks, and of whom nothing more is seen but that the connection is open."""
    host, _, port = server.base.removeprefix("http://").partition(":")
    messages = [{"role": "user", "content": text}]
    body = json.dumps({"model": "words", "messages": messages, "stream": stream}).encode()
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        yield connection


@pytest.mark.parametrize(("text", "stream"), [("for ever", True), ("much", True), ("much", False)])
def test_who_reads_no_answer_makes_room_for_the_next(
    omni: WatchedOmni,
    server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    stream: bool,
) -> None:
    monkeypatch.setattr(DepartingProtocol, "send_timeout_s", SOON_S)
    with asking(server, text, stream=stream):
        assert omni.ended.wait(WAIT_S)
        assert asyncio.run(omni.active_turn_count()) == 0
        assert comes_true(lambda: server.connections == 0)
        with openai.OpenAI(base_url=f"{server.base}/v1", api_key="x", max_retries=0) as client:
            answer = client.chat.completions.create(
                model="words", messages=[{"role": "user", "content": "me"}]
            )
        assert answer.choices[0].message.content == "ME"


def test_who_reads_has_the_whole_answer(server: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{server.base}/v1", api_key="x", max_retries=0) as client:
        answer = client.chat.completions.create(
            model="words", messages=[{"role": "user", "content": "much"}]
        )
    assert answer.choices[0].message.content == "X" * CHUNK_CHARS * CHUNKS
