"""A scripted server whose sessions survive their connections, and ways to cut these."""

from __future__ import annotations

import asyncio
import random
import socket as sockets
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
import pytest
from tests.clients.scripted import MODEL, SESSION_ID, session_of, words
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from omniduplex.clients.duplex import (
    DuplexClient,
    DuplexSessionClosedError,
    ServerEvent,
    Subscription,
)
from omniduplex.protocol.duplex import (
    CloseSession,
    Dialect,
    DuplexCapabilities,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    DuplexSessionObject,
    EventAck,
    Heartbeat,
    HeartbeatAck,
    RealtimeEvent,
    ResumeSession,
    SessionClosed,
    SessionCreated,
    SessionReplaced,
    SessionResumed,
    UpdateSession,
    decode_command,
    default_config,
    encode_event,
    error_event,
)

WAIT_S = 60.0

Answer = Callable[[ServerConnection, ResumeSession], Awaitable[bool]]
"""Returns whether the connection stays and carries the session."""
Cut = Callable[[ServerConnection], Awaitable[None]]


class ResumablePeer:
    """One session, its journal and its tokens; `answers` replaces the next answers to a resume."""

    def __init__(self) -> None:
        self.resumes: list[ResumeSession] = []
        self.commands: list[DuplexCommand] = []
        self.answers: deque[Answer] = deque()
        self.journal: list[str] = []
        self.token = "token-0"
        self.can_resume = True
        self.gives_token = True
        self.replays_all = False
        self.numbers_resumed: Literal["not", "as_cursor", "as_newest"] = "not"
        self.answers_heartbeats = True
        self.gate = asyncio.Event()
        self.gate.set()
        self._socket: ServerConnection | None = None
        self._attached = asyncio.Event()
        self._asked = asyncio.Event()
        self._inbox: asyncio.Queue[DuplexCommand] = asyncio.Queue()

    async def serve(self, socket: ServerConnection) -> None:
        try:
            first = decode_command(await socket.recv())
            if isinstance(first, ResumeSession):
                self.resumes.append(first)
                self._asked.set()
                await self.gate.wait()
                answer = self.answers.popleft() if self.answers else self.give_back
                if not await answer(socket, first):
                    return
            else:
                assert isinstance(first, UpdateSession)
                self._socket = socket
                await self.say(self._created())
                self._attached.set()
            async for frame in socket:
                await self._take(decode_command(frame))
        except ConnectionClosed:
            return

    async def say(self, *events: RealtimeEvent) -> None:
        """Number, journal, and send to whoever is there."""
        for event in events:
            seq = len(self.journal) + 1
            frame = encode_event(event, event_id=f"event_{seq}", seq=seq)
            self.journal.append(frame)
            if self._socket is not None:
                await self._socket.send(frame)

    async def cut(self, how: Cut) -> None:
        """End the connection; the session goes on."""
        await self._attached.wait()
        cut, self._socket = self._socket, None
        self._attached.clear()
        assert cut is not None
        await how(cut)

    async def asked(self) -> None:
        """Wait until a client has asked for the session, be it behind a closed gate."""
        async with asyncio.timeout(WAIT_S):
            await self._asked.wait()

    async def attached(self) -> None:
        await self._attached.wait()

    async def received(self, count: int) -> list[DuplexCommand]:
        """The next commands that are not about the connection itself."""
        return [await self._inbox.get() for _ in range(count)]

    def _created(self) -> SessionCreated:
        if not self.gives_token:
            return SessionCreated(session=session(self.can_resume))
        return SessionCreated(
            session=session(self.can_resume), attachment_generation=0, resume_token=self.token
        )

    async def give_back(self, socket: ServerConnection, request: ResumeSession) -> bool:
        """The usual answer to a resume."""
        if request.resume_token != self.token:
            await refuse(socket, "invalid_resume_token")
            return False
        self.token = f"token-{len(self.resumes)}"
        seq = None
        if self.numbers_resumed == "as_cursor":
            seq = request.last_received_server_event_seq
        elif self.numbers_resumed == "as_newest":
            seq = len(self.journal) + 1
            self.journal.append(encode_event(words("", ""), event_id="its place", seq=seq))
        await socket.send(encode_event(self._resumed(), event_id="resumed", seq=seq))
        sent = 0 if self.replays_all else request.last_received_server_event_seq
        while sent < len(self.journal):
            await socket.send(self.journal[sent])
            sent += 1
        replaced, self._socket = self._socket, socket
        if replaced is not None:
            notice = SessionReplaced(session_id=SESSION_ID, attachment_generation=0)
            await replaced.send(encode_event(notice, event_id="replaced", seq=None))
        self._attached.set()
        return True

    async def give_back_without_replay(
        self, socket: ServerConnection, request: ResumeSession
    ) -> bool:
        """The numbers go on, what is behind them is lost."""
        self.journal, lost = [], self.journal
        try:
            return await self.give_back(socket, request)
        finally:
            self.journal = lost

    async def give_back_late(self, socket: ServerConnection, request: ResumeSession) -> bool:
        """An event that is not numbered overtakes the word of the resume."""
        await socket.send(encode_event(words("r", "early"), event_id="early", seq=None))
        return await self.give_back(socket, request)

    def _resumed(self) -> SessionResumed:
        return SessionResumed(
            session_id=SESSION_ID,
            session=session(self.can_resume),
            attachment_generation=len(self.resumes),
            resume_token=self.token,
        )

    async def _take(self, command: DuplexCommand) -> None:
        match command:
            case EventAck():
                return
            case Heartbeat():
                if self.answers_heartbeats:
                    await self.say(HeartbeatAck(session_id=SESSION_ID))
            case CloseSession():
                self.commands.append(command)
                await self.say(SessionClosed(session_id=SESSION_ID, epoch=0, reason=command.reason))
            case _:
                self.commands.append(command)
                self._inbox.put_nowait(command)


Server = tuple[ResumablePeer, str]
"""A peer and its URL."""


@asynccontextmanager
async def serve_resumable(peer: ResumablePeer) -> AsyncIterator[str]:
    """The peer's URL, while it is served on loopback."""
    async with serve(peer.serve, "127.0.0.1", 0, compression=None, close_timeout=1) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}"


def session(can_resume: bool) -> DuplexSessionObject:
    capabilities = DuplexCapabilities(supports_barge_in=True, supports_session_resume=can_resume)
    plain = session_of(default_config(MODEL, Dialect.DUPLEX))
    return msgspec.structs.replace(plain, capabilities=capabilities)


def client_of(url: str, **options: Any) -> DuplexClient:
    """A client without heartbeats, whose waits between attempts are known."""
    return DuplexClient(
        url, model=MODEL, **{"heartbeat_interval_s": None, "rng": LongestWaits(), **options}
    )


async def next_of(events: Subscription[ServerEvent], kind: type) -> list[ServerEvent]:
    """The events up to the first of a class."""
    found = []
    async with asyncio.timeout(WAIT_S):
        async for event in events:
            found.append(event)
            if isinstance(event, kind):
                return found
    raise AssertionError(f"no {kind.__name__} came")


async def end_of(events: Subscription[ServerEvent]) -> None:
    """Listen until the session ends; raises what it ends with."""
    async with asyncio.timeout(WAIT_S):
        async for _ in events:
            pass


async def ended(events: Subscription[ServerEvent]) -> str:
    """Why the session ended, with an error."""
    with pytest.raises(DuplexSessionClosedError) as caught:
        await end_of(events)
    return caught.value.reason


async def refuse(socket: ServerConnection, code: str) -> None:
    refusal = error_event(DuplexError(code, "no"))
    await socket.send(encode_event(refusal, event_id="refusal", seq=None))


def refusing(code: str) -> Answer:
    async def answer(socket: ServerConnection, request: ResumeSession) -> bool:
        await refuse(socket, code)
        return False

    return answer


def saying(*events: DuplexEvent) -> Answer:
    async def answer(socket: ServerConnection, request: ResumeSession) -> bool:
        for event in events:
            await socket.send(encode_event(event, event_id="said", seq=None))
        return False

    return answer


async def hang_up(socket: ServerConnection, request: ResumeSession) -> bool:
    socket.transport.abort()
    return False


async def say_nothing(socket: ServerConnection, request: ResumeSession) -> bool:
    await socket.wait_closed()
    return False


async def cut_with_close_frame(socket: ServerConnection) -> None:
    await socket.close(1012)


async def cut_with_fin(socket: ServerConnection) -> None:
    socket.transport.close()


async def cut_with_reset(socket: ServerConnection) -> None:
    raw = socket.transport.get_extra_info("socket")
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
    socket.transport.abort()


async def cut_in_a_frame(socket: ServerConnection) -> None:
    # A text frame of 256 bytes of which 4 come.
    socket.transport.write(b"\x81\x7e\x01\x00" + b'{"ty')
    socket.transport.close()


CUTS: list[Cut] = [cut_with_close_frame, cut_with_fin, cut_with_reset, cut_in_a_frame]


class LongestWaits(random.Random):
    """Always the upper end of a range."""

    def uniform(self, a: float, b: float) -> float:
        return b
