"""Events over a server that takes many frames at once, and says whether they flow."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from anyio import wait_all_tasks_blocked
from starlette.types import Message
from starlette.websockets import WebSocket
from tests.entrypoints.fake_omni import MODEL, FakeOmni, FakeSession

from omniduplex.entrypoints.duplex.attachment import MAX_WRITE_CHARS
from omniduplex.entrypoints.duplex.registry import DuplexSessionAttachmentRegistry
from omniduplex.entrypoints.duplex.websocket import TEXT_FRAMES, ClientSocket, TextSink
from omniduplex.protocol.duplex import (
    AudioDelta,
    Dialect,
    HeartbeatAck,
    TranscriptDelta,
    default_config,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Frames:
    """A server's side of a socket: what it was given at a time, and whether it takes more."""

    def __init__(self) -> None:
        self.sink: TextSink | None = None
        self.sent: list[list[dict[str, Any]]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.is_gone = False

    @property
    def flows(self) -> bool:
        return self.open.is_set()

    async def flowing(self) -> None:
        await self.open.wait()

    def send_texts(self, texts: Sequence[str]) -> None:
        if self.is_gone:
            raise OSError("broken pipe")
        self.sent.append([json.loads(text) for text in texts])

    def numbers(self) -> list[list[int]]:
        return [[event["server_event_seq"] for event in events] for events in self.sent]


class Line:
    """A session in the duplex dialect, connected, its first events sent."""

    def __init__(self, session: FakeSession, socket: ClientSocket, frames: Frames) -> None:
        self.session = session
        self.socket = socket
        self.frames = frames


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    omni, frames, numbers = FakeOmni(), Frames(), itertools.count()

    async def no_message() -> Message:
        return {"type": "websocket.connect"}

    async def nothing_past_the_frames(_: Message) -> None:
        raise AssertionError("an event was not sent as a text frame")

    scope = {"type": "websocket", "extensions": {TEXT_FRAMES: {"frames": frames}}}
    socket = ClientSocket(
        WebSocket(scope, no_message, nothing_past_the_frames), send_timeout_s=60.0
    )
    registry = DuplexSessionAttachmentRegistry(
        omni,
        new_id=lambda: f"{next(numbers)}",
        random_bytes=secrets.token_bytes,
        clock=lambda: 0.0,
    )
    async with registry.running():
        session = await omni.open_session(default_config(MODEL, Dialect.DUPLEX))
        registry.open(session, Dialect.DUPLEX, socket)
        await wait_all_tasks_blocked()
        frames.sent.clear()
        yield Line(session, socket, frames)


def speak(line: Line, response_id: str = "r", size: int = 3) -> None:
    item_id = f"item_{response_id}"
    line.session.emit(AudioDelta(response_id=response_id, item_id=item_id, delta=bytes(size)))


async def test_what_is_there_goes_out_at_once(line: Line) -> None:
    speak(line)
    line.session.emit(TranscriptDelta(response_id="r", item_id="i", output_index=0, delta="a"))
    line.session.emit(HeartbeatAck(session_id=line.session.session_id))
    await wait_all_tasks_blocked()

    assert line.frames.numbers() == [[3, 4, 5]]


async def test_a_write_is_bounded(line: Line) -> None:
    for _ in range(3):
        speak(line, size=MAX_WRITE_CHARS)
    await wait_all_tasks_blocked()

    assert line.frames.numbers() == [[3], [4], [5]]


async def test_what_waits_for_a_slow_client_can_be_taken_back(line: Line) -> None:
    line.frames.open.clear()
    for response_id in ("r", "r", "s", "r"):
        speak(line, response_id)
    await wait_all_tasks_blocked()
    line.session.cancelled.add("r")
    line.frames.open.set()
    await wait_all_tasks_blocked()

    assert line.frames.numbers() == [[3]]
    assert line.frames.sent[0][0]["response_id"] == "s"


async def test_nothing_follows_the_last_event(line: Line) -> None:
    await line.session.close()
    line.session.emit(HeartbeatAck(session_id=line.session.session_id))
    await wait_all_tasks_blocked()

    assert [event["type"] for event in line.frames.sent[0]] == ["session.closed"]
    farewell = line.socket.released.result()
    assert farewell is not None
    assert farewell.code == 1000


async def test_a_connection_that_breaks_is_let_go(line: Line) -> None:
    line.frames.is_gone = True
    speak(line)
    await wait_all_tasks_blocked()

    assert line.socket.released.result() is None


async def test_a_connection_that_does_not_read_is_let_go_in_time(line: Line) -> None:
    line.frames.open.clear()
    speak(line)
    await wait_all_tasks_blocked()
    assert not line.socket.released.done()
    line.socket.give_up()  # as its send timeout does
    await wait_all_tasks_blocked()

    assert line.socket.released.result() is None
    assert line.frames.sent == []
