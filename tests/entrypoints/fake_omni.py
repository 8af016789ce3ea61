"""An engine in memory: sessions that answer a few commands at once, and remember the rest."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.protocol.duplex import (
    AppendAudio,
    AudioDelta,
    CancelResponse,
    CloseSession,
    CreateResponse,
    DuplexCapabilities,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    DuplexSessionConfig,
    DuplexSessionObject,
    Heartbeat,
    HeartbeatAck,
    PlaybackCursor,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionUpdated,
    UpdateSession,
    apply_patch,
    error_event,
    session_object,
)

MODEL = "test/model"


class FakeLease:
    """The engine's side of attachment: who is the owner, and whether the grace runs."""

    def __init__(self) -> None:
        self.generation = 0
        self.is_detached = threading.Event()
        self._made: dict[str, int] = {}

    def detach(self, expected: int) -> None:
        self._check(expected)
        self.is_detached.set()

    def resume(self, expected: int, control_id: str) -> int:
        if control_id not in self._made:
            self._check(expected)
            self.generation += 1
            self.is_detached.clear()
            self._made[control_id] = self.generation
        return self._made[control_id]

    def _check(self, expected: int) -> None:
        if expected != self.generation:
            raise DuplexError("session_resume_conflict", f"{expected} is not {self.generation}")


class FakeSession:
    """A session whose answers come at once, in the order of the commands."""

    def __init__(self, omni: FakeOmni, session_id: str, config: DuplexSessionConfig) -> None:
        self.session_id = session_id
        self.config = config
        self.lease_generation = 0
        self.lease = FakeLease()
        self.commands: list[DuplexCommand] = []
        self.cancelled: set[str] = set()
        self.close_reason: str | None = None
        self.released = threading.Event()
        self.pending: asyncio.Queue[DuplexEvent | None] = asyncio.Queue()
        self._waits = False
        self._eager: Callable[[], None] | None = None
        self._omni = omni
        self._emit_session(SessionCreated)
        self._emit_session(SessionUpdated)

    async def submit(self, command: DuplexCommand) -> None:
        if self.close_reason is not None:
            raise DuplexError("session_closed", "The session is closed.")
        self.commands.append(command)
        match command:
            case UpdateSession():
                self._update(command)
            case Heartbeat():
                self.emit(HeartbeatAck(session_id=self.session_id))
            case CreateResponse():
                self.speak()
            case CancelResponse():
                error = DuplexError("response_not_active", "Cancellation failed: none is active.")
                error.event_id = command.event_id
                self.emit(error_event(error))
            case CloseSession():
                await self.close(command.reason)

    def submit_now(self, command: DuplexCommand) -> bool:
        """Only what changes nothing else: a session of the engine takes any command."""
        if self.close_reason is not None:
            raise DuplexError("session_closed", "The session is closed.")
        if not isinstance(command, AppendAudio):
            return False
        self.commands.append(command)
        return True

    async def events(self) -> AsyncIterator[DuplexEvent]:
        while True:
            self._waits = self.pending.empty()
            event = await self.pending.get()
            self._waits = False
            if event is None:
                return
            yield event

    def listen(self, eager: Callable[[], None] | None) -> None:
        self._eager = eager

    def take(self) -> DuplexEvent | None:
        # None ends `events` alone.
        while not self.pending.empty():
            event = self.pending.get_nowait()
            if event is None:
                self.pending.put_nowait(None)
                return None
            if isinstance(event, SessionClosed | SessionExpired):
                self.pending.put_nowait(None)
            if self.deliverable(event):
                return event
        return None

    def deliverable(self, event: DuplexEvent) -> bool:
        return not (isinstance(event, AudioDelta) and event.response_id in self.cancelled)

    async def close(self, reason: str = "client_close") -> None:
        if self.close_reason is not None:
            return
        self.close_reason = reason
        self._omni.sessions.remove(self)
        self.emit(SessionClosed(session_id=self.session_id, epoch=0, reason=reason))
        self.pending.put_nowait(None)
        self.released.set()

    def expire(self, reason: str) -> None:
        self.close_reason = reason
        self._omni.sessions.remove(self)
        self.emit(SessionExpired(session_id=self.session_id, reason=reason))
        self.released.set()

    def emit(self, event: DuplexEvent) -> None:
        if self._waits:  # asked before `events` wakes up
            asyncio.get_running_loop().call_soon(self._offer)
        self.pending.put_nowait(event)

    def _offer(self) -> None:
        if self._waits and self._eager is not None:
            self._eager()

    def _update(self, command: UpdateSession) -> None:
        try:
            self.config = apply_patch(self.config, command.session)
        except DuplexError as error:
            error.event_id = command.event_id
            self.emit(error_event(error))
        else:
            self._emit_session(SessionUpdated)

    def speak(self) -> None:
        for response_id in self._omni.script:
            delta = bytes(self._omni.delta_bytes)
            item_id = f"item_{response_id}"
            self.emit(AudioDelta(response_id=response_id, item_id=item_id, delta=delta))

    def _emit_session(self, kind: type[SessionCreated] | type[SessionUpdated]) -> None:
        self.emit(kind(session=self.public_object()))

    def public_object(self) -> DuplexSessionObject:
        return session_object(
            self.config,
            session_id=self.session_id,
            capabilities=DuplexCapabilities(supports_session_resume=self._omni.resumable),
            state="open",
            turn_state="idle",
            epoch=0,
            turn_id=0,
            active_response_id=None,
            active_response_turn_id=None,
            active_request_id=None,
            playback=PlaybackCursor(),
        )


async def _at_once() -> None:
    pass


class FakeOmni:
    """Admits up to `max_sessions`; `script` names the response of each audio delta of an answer."""

    def __init__(self, max_sessions: int = 4) -> None:
        self.pipeline = PipelineConfig(name="test", model=MODEL, stages=())
        self.alive = True
        self.max_sessions = max_sessions
        self.script: tuple[str, ...] = ("resp_1",)
        self.delta_bytes = 4
        self.resumable = False
        self.resuming: Callable[[], Awaitable[None]] = _at_once
        """What a resume waits for in the engine, after it took effect there."""
        self.fault: Exception | None = None
        self.sessions: list[FakeSession] = []
        self.opened: queue.Queue[FakeSession] = queue.Queue()
        self._count = 0
        self.loop: asyncio.AbstractEventLoop
        """The server's loop, from the first session on."""

    def limit(self, **limits: Any) -> None:
        """Set limits of the deployment."""
        sessions = msgspec.structs.replace(self.pipeline.duplex_session, **limits)
        self.pipeline = msgspec.structs.replace(self.pipeline, duplex_session=sessions)

    async def active_session_count(self) -> int:
        return len(self.sessions)

    async def open_session(self, config: DuplexSessionConfig) -> FakeSession:
        self.loop = asyncio.get_running_loop()
        if self.fault is not None:
            raise self.fault
        if len(self.sessions) >= self.max_sessions:
            raise DuplexError("resource_exhausted", f"capacity exhausted: {self.max_sessions}")
        self._count += 1
        session = FakeSession(self, f"duplex-{self._count}", config)
        self.sessions.append(session)
        self.opened.put(session)
        return session

    async def detach_session(self, session_id: str, *, expected_lease_generation: int) -> None:
        self._session(session_id).lease.detach(expected_lease_generation)

    async def resume_session(
        self, session_id: str, *, expected_lease_generation: int, control_id: str
    ) -> int:
        lease = self._session(session_id, gone="session_resume_expired").lease
        generation = lease.resume(expected_lease_generation, control_id)
        await self.resuming()
        return generation

    async def describe_session(self, session_id: str) -> DuplexSessionObject:
        return self._session(session_id).public_object()

    def _session(self, session_id: str, *, gone: str = "unknown_session") -> FakeSession:
        for session in self.sessions:
            if session.session_id == session_id:
                return session
        raise DuplexError(gone, "gone")

    async def close_all_sessions(self, reason: str = "shutdown") -> None:
        for session in tuple(self.sessions):
            await session.close(reason)
