"""A scripted server whose sessions survive their connections, and ways to cut these."""

from __future__ import annotations

import asyncio
import random
import socket as sockets
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from tests.clients.scripted import MODEL, SESSION_ID, session_of
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

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

Answer = Callable[[ServerConnection, ResumeSession], Awaitable[None]]
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
        self.numbers_resumed = False
        self.answers_heartbeats = True
        self.gate = asyncio.Event()
        self.gate.set()
        self._socket: ServerConnection | None = None
        self._attached = asyncio.Event()
        self._inbox: asyncio.Queue[DuplexCommand] = asyncio.Queue()

    async def serve(self, socket: ServerConnection) -> None:
        try:
            first = decode_command(await socket.recv())
            if isinstance(first, ResumeSession):
                self.resumes.append(first)
                await self.gate.wait()
                if self.answers:
                    await self.answers.popleft()(socket, first)
                    return
                await self._resume(socket, first)
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

    async def _resume(self, socket: ServerConnection, request: ResumeSession) -> None:
        if request.resume_token != self.token:
            await refuse(socket, "invalid_resume_token")
            return
        self.token = f"token-{len(self.resumes)}"
        replay = self.journal[0 if self.replays_all else request.last_received_server_event_seq :]
        resumed = self.resumed()
        if self.numbers_resumed:
            frame = encode_event(resumed, event_id="resumed", seq=len(self.journal) + 1)
            self.journal.append(frame)
        else:
            frame = encode_event(resumed, event_id="resumed", seq=None)
        replaced, self._socket = self._socket, socket
        for text in (frame, *replay):
            await socket.send(text)
        if replaced is not None:
            notice = SessionReplaced(session_id=SESSION_ID, attachment_generation=0)
            await replaced.send(encode_event(notice, event_id="replaced", seq=None))
        self._attached.set()

    def resumed(self) -> SessionResumed:
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


async def refuse(socket: ServerConnection, code: str) -> None:
    refusal = error_event(DuplexError(code, "no"))
    await socket.send(encode_event(refusal, event_id="refusal", seq=None))


def refusing(code: str) -> Answer:
    async def answer(socket: ServerConnection, request: ResumeSession) -> None:
        await refuse(socket, code)

    return answer


def saying(*events: DuplexEvent) -> Answer:
    async def answer(socket: ServerConnection, request: ResumeSession) -> None:
        for event in events:
            await socket.send(encode_event(event, event_id="said", seq=None))

    return answer


async def hang_up(socket: ServerConnection, request: ResumeSession) -> None:
    socket.transport.abort()


async def say_nothing(socket: ServerConnection, request: ResumeSession) -> None:
    await socket.wait_closed()


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
