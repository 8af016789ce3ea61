"""A cancel at any await leaves no slot taken and no task behind (R21, B41, B47)."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator

import pytest
from starlette.types import Message
from starlette.websockets import WebSocket
from tests.entrypoints.running import running
from tests.faults.resumable_echo import resumable_echo
from tests.reliability.cancellation import cancelled_everywhere
from tests.reliability.processes import open_files, settles

from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.inline_duplex import InlineDuplexClient
from omniduplex.clients.websocket import DuplexClient
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex_orchestrator import CONVERTERS
from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.duplex_session_handle import DuplexSessionHandle
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.protocol.duplex import (
    ContentPart,
    CreateItem,
    CreateResponse,
    DuplexError,
    Heartbeat,
    ItemInput,
    ResponseDone,
    SessionClosed,
)

pytestmark = pytest.mark.anyio

CAPACITY = 2
TIMEOUT_S = 60.0
PATIENCE = 20_000
"""Looks at a count, a millisecond apart."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    pipeline = resumable_echo(max_sessions=CAPACITY, idle_ttl_s=None)
    with DuplexOmni(pipeline=pipeline) as omni:
        yield omni


def hurried_echo() -> PipelineConfig:
    """Echo whose sessions outlive their connections by a moment."""
    return resumable_echo(max_sessions=CAPACITY, disconnect_grace_s=0.01, reaper_interval_s=0.005)


async def becomes(measure: Callable[[], Awaitable[int]], expected: int) -> None:
    """Give a count the time to come to what it should be, and no more than it needs."""
    for _ in range(PATIENCE):
        if await measure() == expected:
            return
        await asyncio.sleep(0.001)
    assert await measure() == expected


async def tasks() -> int:
    return len(asyncio.all_tasks())


async def slots_are_free(omni: DuplexOmni) -> None:
    """Nothing is open, and all that may be opened can be."""
    await becomes(omni.active_session_count, 0)
    for session in [await omni.open_session() for _ in range(CAPACITY)]:
        await session.close()


async def is_whole(session: DuplexSessionHandle) -> None:
    """The session takes a turn and ends it."""
    text = ContentPart(type="input_text", text="hello")
    await session.submit(CreateItem(item=ItemInput(type="message", role="user", content=(text,))))
    await session.submit(CreateResponse())
    async with asyncio.timeout(TIMEOUT_S):
        async for event in session.events():
            if isinstance(event, ResponseDone):
                return


async def test_b41_an_open_that_is_cancelled_anywhere_takes_no_slot(omni: DuplexOmni) -> None:
    before, threads = await tasks(), threading.active_count()
    opened = 0
    async for session in cancelled_everywhere(omni.open_session):
        if session is not None:
            opened += 1
            await is_whole(session)
            await session.close()
        await slots_are_free(omni)

    assert opened == 2
    await becomes(tasks, before)
    assert threading.active_count() <= threads + CONVERTERS


async def test_a_close_that_is_cancelled_anywhere_closes(omni: DuplexOmni) -> None:
    before = await tasks()
    sessions: list[DuplexSessionHandle] = []

    async def close() -> None:
        await sessions[-1].close()

    sessions.append(await omni.open_session())
    async for _ in cancelled_everywhere(close):
        await slots_are_free(omni)
        events = [event async for event in sessions[-1].events()]
        assert isinstance(events[-1], SessionClosed)
        sessions.append(await omni.open_session())
    await sessions[-1].close()

    assert len(sessions) > 4
    await becomes(tasks, before)


async def test_b47_a_session_left_by_a_cancel_closes(omni: DuplexOmni) -> None:
    async def converse() -> None:
        async with await omni.open_session() as session:
            await is_whole(session)

    async for _ in cancelled_everywhere(converse):
        await slots_are_free(omni)


async def test_a_submit_never_waits(omni: DuplexOmni) -> None:
    async with await omni.open_session() as session:
        runs = 0
        async for _ in cancelled_everywhere(lambda: session.submit(Heartbeat())):
            runs += 1

    assert runs == 2


@pytest.mark.parametrize("again_under_its_id", [False, True])
async def test_a_detach_or_resume_that_is_cancelled_anywhere_leaves_the_session_whole(
    omni: DuplexOmni, again_under_its_id: bool
) -> None:
    async with await omni.open_session() as session:
        name = session.session_id
        generation = 0
        control = ""

        async def come_and_go() -> int:
            await omni.detach_session(name, expected_lease_generation=generation)
            return await omni.resume_session(
                name, expected_lease_generation=generation, control_id=control
            )

        control = uuid.uuid4().hex
        async for _ in cancelled_everywhere(come_and_go):
            if again_under_its_id:
                # Whether or not the cancelled one had taken effect, this one's answer is true.
                generation = await omni.resume_session(
                    name, expected_lease_generation=generation, control_id=control
                )
            else:
                generation = await current_generation(omni, name, generation)
            await omni.describe_session(name)
            await is_whole(session)
            control = uuid.uuid4().hex
    await slots_are_free(omni)


async def current_generation(omni: DuplexOmni, name: str, last: int) -> int:
    """The lease's generation: the last one known, or the next if a resume took effect."""
    try:
        await omni.detach_session(name, expected_lease_generation=last)
    except DuplexError:
        last += 1
        await omni.detach_session(name, expected_lease_generation=last)
    return last


class InMemorySocket:
    """The server's side of one WebSocket: it says what was planned, then it hangs up."""

    def __init__(self, path: str, *said: str) -> None:
        connect: Message = {"type": "websocket.connect"}
        self._messages = [connect, *({"type": "websocket.receive", "text": text} for text in said)]
        self._answered = asyncio.Event()
        path, _, query = path.partition("?")
        self.websocket = WebSocket(
            {
                "type": "websocket",
                "path": path,
                "query_string": query.encode(),
                "headers": [(b"host", b"x")],
                "subprotocols": [],
            },
            self._receive,
            self._send,
        )

    async def _receive(self) -> Message:
        await asyncio.sleep(0)
        if self._messages:
            return self._messages.pop(0)
        await self._answered.wait()
        return {"type": "websocket.disconnect", "code": 1006}

    async def _send(self, message: Message) -> None:
        await asyncio.sleep(0)
        if '"response.done"' in message.get("text", ""):
            self._answered.set()


SAID = (
    (
        '{"type":"conversation.item.create","item":{"type":"message","role":"user",'
        '"content":[{"type":"input_text","text":"hello"}]}}'
    ),
    '{"type":"response.create"}',
)


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/duplex?autostart=0"])
async def test_b41_a_connection_that_is_cancelled_anywhere_takes_no_slot(path: str) -> None:
    with DuplexOmni(pipeline=hurried_echo()) as omni:
        serving = DuplexServing(omni, "echo")
        async with serving.running():
            before = await tasks()

            async def serve() -> None:
                first = () if path == "/v1/realtime" else ('{"type":"session.update"}',)
                await serving.serve(InMemorySocket(path, *first, *SAID).websocket)

            runs = 0
            async for _ in cancelled_everywhere(serve):
                runs += 1
                await becomes(omni.active_session_count, 0)
                await becomes(tasks, before)
                assert serving.sessions == 0

    assert runs > 8


async def client_is_cancelled_everywhere(
    omni: DuplexOmni, make: Callable[[], DuplexClientBase]
) -> None:
    before = await tasks()
    opened: list[DuplexClientBase] = []

    async def opening() -> DuplexClientBase:
        client = make()
        await client.open()
        return client

    async for client in cancelled_everywhere(opening):
        if client is not None:
            await client.close()
        await becomes(omni.active_session_count, 0)
        await becomes(tasks, before)

    async def closing() -> None:
        await opened[-1].close()

    opened.append(await opening())
    async for _ in cancelled_everywhere(closing):
        await becomes(omni.active_session_count, 0)
        await becomes(tasks, before)
        opened.append(await opening())
    await opened[-1].close()

    await becomes(tasks, before)
    await slots_are_free(omni)


async def test_an_inline_client_that_is_cancelled_anywhere_leaves_nothing(
    omni: DuplexOmni,
) -> None:
    await client_is_cancelled_everywhere(omni, lambda: InlineDuplexClient(omni, model="m"))


@pytest.mark.e2e
async def test_a_client_that_is_cancelled_anywhere_leaves_nothing() -> None:
    with DuplexOmni(pipeline=hurried_echo()) as omni, running(create_app(omni)) as server:
        url = server.base.replace("http", "ws", 1)
        files = open_files(os.getpid())
        await client_is_cancelled_everywhere(omni, lambda: DuplexClient(url, model="m"))

        async def connections() -> int:
            return server.connections

        await becomes(connections, 0)
        assert settles(lambda: open_files(os.getpid()), files)
