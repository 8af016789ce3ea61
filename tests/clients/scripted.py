"""The other end of a client, in a test's hand: over a real WebSocket or in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from omniduplex.audio.wav import wav_bytes
from omniduplex.clients.duplex import Clock
from omniduplex.protocol.duplex import (
    AudioDelta,
    CloseSession,
    Dialect,
    DuplexCapabilities,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    DuplexResponse,
    DuplexSessionConfig,
    DuplexSessionObject,
    EventAck,
    ListenDecision,
    ListenResponse,
    PlaybackCursor,
    ResponseCreated,
    ResponseDone,
    ResponseFacts,
    ResponseStatus,
    SessionClosed,
    SessionCreated,
    SpeakDecision,
    SpeakMetadata,
    TextDelta,
    TranscriptDelta,
    UpdateSession,
    apply_patch,
    decode_command,
    default_config,
    encode_event,
    error_event,
    project,
    session_object,
)

SESSION_ID = "duplex-1"
MODEL = "test/model"
C = TypeVar("C")


class Peer:
    """Plays the server's part: opens, says goodbye, and otherwise what the test tells it."""

    def __init__(self) -> None:
        self.config: DuplexSessionConfig | None = None
        self.refusal: DuplexError | None = None
        self.silent = False
        self.polite = True
        self.open_sessions = 0
        self.commands: list[DuplexCommand] = []
        self.close_reasons: list[str] = []
        self.outbox: asyncio.Queue[DuplexEvent | None] = asyncio.Queue()
        self._inbox: asyncio.Queue[DuplexCommand] = asyncio.Queue()

    def emit(self, *events: DuplexEvent) -> None:
        for event in events:
            self.outbox.put_nowait(event)

    def hang_up(self) -> None:
        """End the stream of events without a goodbye."""
        self.outbox.put_nowait(None)

    async def received(self, kind: type[C]) -> C:
        """The next command of this class, when it comes."""
        while True:
            command = await self._inbox.get()
            if isinstance(command, kind):
                return command

    def sent(self, kind: type[C]) -> list[C]:
        return [command for command in self.commands if isinstance(command, kind)]

    def open(self, config: DuplexSessionConfig) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.config = config
        self.open_sessions += 1
        if not self.silent:
            self.emit(SessionCreated(session=session_of(config)))

    def take(self, command: DuplexCommand) -> None:
        self.commands.append(command)
        self._inbox.put_nowait(command)

    def close(self, reason: str) -> None:
        if not self.open_sessions:
            return
        self.open_sessions -= 1
        self.close_reasons.append(reason)
        if self.polite:
            self.emit(SessionClosed(session_id=SESSION_ID, epoch=0, reason=reason))
            self.hang_up()


class InlinePeer:
    """A peer as an engine and as its only session."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def open_session(self, config: DuplexSessionConfig) -> InlinePeer:
        self._peer.open(config)
        return self

    async def submit(self, command: DuplexCommand) -> None:
        self._peer.take(command)

    async def events(self) -> AsyncIterator[DuplexEvent]:
        while (event := await self._peer.outbox.get()) is not None:
            yield event

    def deliverable(self, event: DuplexEvent) -> bool:
        return not (isinstance(event, AudioDelta) and event.response_id == "undeliverable")

    async def close(self, reason: str = "client_close") -> None:
        self._peer.close(reason)


class WebSocketPeer:
    """A peer behind a loopback WebSocket, numbering its events from 1."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.paths: list[str] = []

    async def serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.paths.append(socket.request.path)
        writing = asyncio.create_task(self._write(socket))
        try:
            async for frame in socket:
                self._take(decode_command(frame))
        except ConnectionClosed:
            return
        finally:
            writing.cancel()
            await asyncio.wait([writing])

    def _take(self, command: DuplexCommand) -> None:
        if isinstance(command, UpdateSession) and self.peer.config is None:
            config = default_config(MODEL, Dialect.DUPLEX)
            try:
                self.peer.open(apply_patch(config, command.session))
            except DuplexError as error:
                error.event_id = command.event_id
                self.peer.emit(error_event(error))
        elif isinstance(command, CloseSession):
            self.peer.close(command.reason)
        else:
            self.peer.take(command)

    async def _write(self, socket: ServerConnection) -> None:
        seq = 0
        while (event := await self.peer.outbox.get()) is not None:
            seq += 1
            shown = project(event, Dialect.DUPLEX)
            assert shown is not None
            await socket.send(encode_event(shown, event_id=f"event_{seq}", seq=seq))
        # No close frame: the connection is simply gone.
        socket.transport.abort()


@asynccontextmanager
async def serve_peer(peer: WebSocketPeer) -> AsyncIterator[str]:
    """The peer's URL, while it is served on loopback."""
    async with serve(peer.serve, "127.0.0.1", 0, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}"


class VirtualClock(Clock):
    """Time that passes only when the test says so; sleepers wake in order."""

    def __init__(self) -> None:
        self._now = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self._asleep = asyncio.Event()

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        woken = asyncio.Event()
        self._sleepers.append((self._now + seconds, woken))
        self._asleep.set()
        await woken.wait()

    async def sleeping(self, count: int = 1) -> None:
        """Wait until so many sleepers wait for time to pass."""
        while len(self._sleepers) < count:
            self._asleep.clear()
            await self._asleep.wait()

    def advance(self, seconds: float) -> None:
        self._now += seconds
        due = [woken for at, woken in self._sleepers if at <= self._now + 1e-9]
        self._sleepers = [entry for entry in self._sleepers if entry[1] not in due]
        for woken in due:
            woken.set()


class JumpingClock(Clock):
    """Time that jumps to the first thing awaited once everybody has had their say.

    `slept` is every wait in s.
    """

    def __init__(self) -> None:
        self._now = 100.0
        self._alarms: list[float] = []
        self.slept: list[float] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self.slept.append(seconds)
        alarm = self._now + seconds
        self._alarms.append(alarm)
        try:
            while self._now < alarm:
                for _ in range(10):
                    await asyncio.sleep(0)
                if alarm == min(self._alarms):
                    self._now = max(self._now, alarm)
        finally:
            self._alarms.remove(alarm)


def session_of(config: DuplexSessionConfig) -> DuplexSessionObject:
    return session_object(
        config,
        session_id=SESSION_ID,
        capabilities=DuplexCapabilities(supports_barge_in=True),
        state="open",
        turn_state="idle",
        epoch=0,
        turn_id=0,
        active_response_id=None,
        active_response_turn_id=None,
        active_request_id=None,
        playback=PlaybackCursor(),
    )


def acks(peer: Peer) -> list[int]:
    return [ack.server_event_seq for ack in peer.sent(EventAck)]


def created(response_id: str) -> ResponseCreated:
    return ResponseCreated(
        response_id=response_id, response=DuplexResponse(id=response_id, status="in_progress")
    )


def speak(response_id: str) -> SpeakDecision:
    return SpeakDecision(
        response_id=response_id,
        item_id=f"item_{response_id}",
        metadata=SpeakMetadata(session_id=SESSION_ID, epoch=0),
    )


def audio(response_id: str, pcm: bytes, *, rate_hz: int = 24000) -> AudioDelta:
    return AudioDelta(
        response_id=response_id,
        item_id=f"item_{response_id}",
        delta=pcm,
        format="pcm16",
        sample_rate_hz=rate_hz,
    )


def wav(response_id: str, pcm: bytes, *, rate_hz: int = 24000) -> AudioDelta:
    delta = audio(response_id, wav_bytes(pcm, rate_hz) if pcm else b"", rate_hz=rate_hz)
    return msgspec.structs.replace(delta, format="wav")


def words(response_id: str, delta: str) -> TranscriptDelta:
    return TranscriptDelta(response_id=response_id, item_id=f"item_{response_id}", delta=delta)


def text(response_id: str, delta: str) -> TextDelta:
    return TextDelta(response_id=response_id, item_id=f"item_{response_id}", delta=delta)


def done(response_id: str, status: ResponseStatus = "completed") -> ResponseDone:
    return ResponseDone(
        response_id=response_id, response=DuplexResponse(id=response_id, status=status)
    )


def listen(response_id: str | None = None) -> ListenDecision:
    facts = ResponseFacts(type="response.listen", session_id=SESSION_ID, epoch=0)
    body = ListenResponse(metadata=facts)
    if response_id is None:
        return ListenDecision(session_id=SESSION_ID, epoch=0, response=body)
    return ListenDecision(session_id=SESSION_ID, epoch=0, response_id=response_id, response=body)
