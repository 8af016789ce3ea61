"""What a session is left with when a resume fails or is cancelled, at whichever await."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint
from starlette.types import Message
from starlette.websockets import WebSocket
from tests.entrypoints.fake_omni import MODEL, FakeOmni, FakeSession

from omniduplex.entrypoints.duplex.attachment import AttachmentState, SessionAttachment
from omniduplex.entrypoints.duplex.registry import DuplexSessionAttachmentRegistry
from omniduplex.entrypoints.duplex.websocket import ClientGone, ClientSocket
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexError,
    HeartbeatAck,
    ResumeSession,
    SessionPatch,
    UpdateSession,
    default_config,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Wire:
    """An ASGI server's side of a socket: takes `room` frames, then blocks; or is broken."""

    def __init__(self, room: float = float("inf")) -> None:
        self.events: list[dict[str, Any]] = []
        self.room = room
        self.writable = asyncio.Event()
        self.is_broken = False
        websocket = WebSocket({"type": "websocket"}, self._receive, self._send)
        self.websocket = websocket

    async def open(self) -> ClientSocket:
        await self.websocket.accept()
        return ClientSocket(self.websocket, send_timeout_s=60.0)

    async def _receive(self) -> Message:
        return {"type": "websocket.connect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            return
        await checkpoint()
        if len(self.events) >= self.room:
            await self.writable.wait()
        if self.is_broken:
            raise OSError("broken pipe")
        if message["type"] == "websocket.send":
            self.events.append(json.loads(message["text"]))

    def numbers(self) -> list[int]:
        return [event["server_event_seq"] for event in self.events]


class House:
    """A registry with one resumable session, detached after its first two events."""

    def __init__(self, registry: DuplexSessionAttachmentRegistry, omni: FakeOmni) -> None:
        self.registry = registry
        self.omni = omni
        self.session: FakeSession
        self.attachment: SessionAttachment
        self.token = ""

    async def open(self) -> ClientSocket:
        wire = Wire()
        socket = await wire.open()
        self.session = await self.omni.open_session(default_config(MODEL, Dialect.DUPLEX))
        self.attachment = self.registry.open(self.session, Dialect.DUPLEX, socket)
        await wait_all_tasks_blocked()
        self.token = wire.events[0]["resume_token"]
        return socket

    async def detached(self) -> None:
        socket = await self.open()
        self.attachment.drop(socket)
        await wait_all_tasks_blocked()
        assert self.session.lease.is_detached.is_set()

    async def resume(self, wire: Wire, cursor: int = 2) -> ClientSocket:
        request = ResumeSession(
            session_id=self.session.session_id,
            resume_token=self.token,
            last_received_server_event_seq=cursor,
        )
        socket = await wire.open()
        await self.registry.resume(request, socket)
        return socket

    def beat(self, count: int = 1) -> None:
        for _ in range(count):
            self.session.emit(HeartbeatAck(session_id=self.session.session_id))

    async def can_be_resumed(self) -> bool:
        """Whether it is detached in the engine too, and the token at hand takes it."""
        await wait_all_tasks_blocked()
        assert self.attachment.state is AttachmentState.DETACHED
        assert self.session.lease.is_detached.is_set()
        wire = Wire()
        await self.resume(wire)
        return bool(wire.events[0]["type"] == "session.resumed")


@pytest.fixture
async def house() -> AsyncIterator[House]:
    omni = FakeOmni()
    omni.resumable = True
    numbers = itertools.count()
    registry = DuplexSessionAttachmentRegistry(
        omni,
        new_id=lambda: f"{next(numbers)}",
        random_bytes=secrets.token_bytes,
        clock=lambda: 0.0,
    )
    async with registry.running():
        yield House(registry, omni)


async def test_a_new_connection_that_is_dead_leaves_the_session_resumable(house: House) -> None:
    await house.detached()
    wire = Wire()
    wire.is_broken = True
    with pytest.raises(ClientGone):
        await house.resume(wire)

    assert await house.can_be_resumed()


@pytest.mark.parametrize("after", range(6))
async def test_a_cut_during_the_replay_is_a_detach(house: House, after: int) -> None:
    await house.detached()
    house.beat(6)
    await wait_all_tasks_blocked()
    wire = Wire(room=after)
    resuming = asyncio.create_task(house.resume(wire))
    await wait_all_tasks_blocked()
    wire.is_broken = True
    wire.writable.set()
    with pytest.raises(ClientGone):
        await resuming

    assert len(wire.events) == after
    assert await house.can_be_resumed()


async def test_a_resume_that_is_cancelled_in_the_engine_is_seen_through(house: House) -> None:
    await house.detached()
    answer = asyncio.Event()

    async def slow() -> None:
        await answer.wait()

    house.omni.resuming = slow
    wire = Wire()
    resuming = asyncio.create_task(house.resume(wire))
    await wait_all_tasks_blocked()
    resuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resuming
    assert house.session.lease.generation == 1
    answer.set()

    assert await house.can_be_resumed()
    assert wire.events == []


async def test_a_cancel_at_any_await_of_a_resume_loses_nothing(house: House) -> None:
    """Cancel after 0, 1, 2, ... steps of the event loop, until the resume is faster."""
    await house.detached()
    house.beat(3)
    for steps in itertools.count():
        await wait_all_tasks_blocked()
        wire = Wire()
        resuming = asyncio.create_task(house.resume(wire, cursor=2))
        for _ in range(steps):
            await asyncio.sleep(0)
        if resuming.done():
            break
        resuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await resuming
        await wait_all_tasks_blocked()
        assert house.attachment.state is AttachmentState.DETACHED, steps
        assert house.session.lease.is_detached.is_set(), steps
    assert steps > 3
    assert wire.numbers() == [2, 3, 4, 5]


async def test_a_cancel_at_any_await_of_a_takeover_loses_nothing(house: House) -> None:
    for steps in itertools.count():
        old = await house.open()
        wire = Wire()
        resuming = asyncio.create_task(house.resume(wire))
        for _ in range(steps):
            await asyncio.sleep(0)
        if resuming.done():
            break
        resuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await resuming
        await wait_all_tasks_blocked()
        if old.released.done():
            assert await house.can_be_resumed(), steps
        else:
            assert house.attachment.state is AttachmentState.ATTACHED, steps
        await house.session.close()
        await wait_all_tasks_blocked()
        assert house.registry.count == 0
    assert steps > 3


async def test_a_replay_that_waits_is_cut_short_by_a_takeover(house: House) -> None:
    await house.detached()
    house.beat(3)
    await wait_all_tasks_blocked()
    stuck, wire = Wire(room=2), Wire()
    waiting = asyncio.create_task(house.resume(stuck))
    await wait_all_tasks_blocked()
    house.beat()
    house.token = stuck.events[0]["resume_token"]
    await house.resume(wire, cursor=3)
    await wait_all_tasks_blocked()

    with pytest.raises(ClientGone):
        await waiting
    assert stuck.numbers() == [2, 3]
    assert wire.numbers() == [3, 4, 5, 6]
    assert house.attachment.state is AttachmentState.ATTACHED


async def test_a_connection_that_does_not_read_is_dropped_in_time(house: House) -> None:
    await house.detached()
    wire = Wire(room=1)
    socket = await house.resume(wire)
    house.beat(2)
    await wait_all_tasks_blocked()
    assert house.session.pending.qsize() == 1
    socket.give_up()  # as its send timeout does
    await wait_all_tasks_blocked()

    assert socket.released.result() is None
    assert house.session.pending.empty()
    house.token = wire.events[0]["resume_token"]
    again = Wire()
    await house.resume(again)
    assert again.numbers() == [2, 3, 4]


async def test_a_dialect_taken_up_as_its_client_leaves_keeps_no_session(house: House) -> None:
    socket = await (wire := Wire()).open()
    session = await house.omni.open_session(default_config(MODEL, Dialect.OPENAI))
    attachment = house.registry.open(session, Dialect.OPENAI, socket)
    await wait_all_tasks_blocked()
    attachment.drop(socket)
    await session.submit(UpdateSession(session=SessionPatch(extensions=("duplex",))))
    await wait_all_tasks_blocked()

    assert attachment.leaves
    assert session.close_reason == "disconnect"
    assert wire.numbers() == [1]


async def test_without_a_connection_the_pump_goes_on_and_memory_is_bounded(house: House) -> None:
    house.omni.limit(resume_replay_max_bytes_per_session=10_000)
    await house.detached()
    house.beat(1000)
    await wait_all_tasks_blocked()

    assert house.session.pending.empty()
    journal = house.attachment._log.journal
    assert journal is not None
    assert journal.held_bytes <= 10_000
    assert journal.head == 1002


async def test_an_ended_session_is_forgotten(house: House) -> None:
    await house.detached()
    house.session.expire("disconnect_grace_expired")
    await wait_all_tasks_blocked()

    assert house.registry.count == 0
    with pytest.raises(DuplexError) as refused:
        await house.resume(Wire())
    assert refused.value.code == "session_resume_expired"


async def test_a_session_that_ends_while_it_is_resumed_has_expired(house: House) -> None:
    await house.detached()

    async def ends() -> None:
        house.omni.sessions.clear()

    house.omni.resuming = ends
    with pytest.raises(DuplexError) as refused:
        await house.resume(Wire())
    assert refused.value.code == "session_resume_expired"


async def test_after_the_server_has_stopped_no_session_is_carried() -> None:
    omni = FakeOmni()
    registry = DuplexSessionAttachmentRegistry(
        omni, new_id=lambda: "1", random_bytes=secrets.token_bytes, clock=lambda: 0.0
    )
    session = await omni.open_session(default_config(MODEL, Dialect.DUPLEX))
    with pytest.raises(RuntimeError, match="while the server runs"):
        registry.open(session, Dialect.DUPLEX, await Wire().open())
