"""One session and the connection that carries it now, if any: the session outlives connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any

from omniduplex.entrypoints.duplex.credential import RandomBytes
from omniduplex.entrypoints.duplex.event_log import SessionEventLog
from omniduplex.entrypoints.duplex.ports import ServedOmni, ServedSession
from omniduplex.entrypoints.duplex.resume import ResumeRight, expired_session
from omniduplex.entrypoints.duplex.websocket import (
    GOING_AWAY,
    INTERNAL_ERROR,
    NORMAL_CLOSURE,
    ClientGone,
    ClientSocket,
    Farewell,
)
from omniduplex.protocol.duplex import (
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    DuplexSessionObject,
    ResumeSession,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionExpiring,
    SessionReplaced,
    SessionUpdated,
    error_event,
)

SHUTDOWN = "shutdown"
# Endings that are not normal ones (RFC 6455, section 7.4.1).
_CLOSE_CODES = {SHUTDOWN: GOING_AWAY, "internal_error": INTERNAL_ERROR}

# What is written at once: three 80 ms deltas. What is written cannot be taken back by a cancel.
MAX_WRITE_CHARS = 16 * 1024

LAST_EVENTS = (SessionClosed, SessionExpired)

Spawn = Callable[[Coroutine[Any, Any, None], str], None]

logger = logging.getLogger(__name__)


class AttachmentState(Enum):
    """Where a session stands towards connections."""

    ATTACHED = "attached"
    DETACHED = "detached"
    RESUMING = "resuming"
    """A resume was let in; the connection before it may still be there."""
    ENDED = "ended"


class SessionAttachment:
    """The one writer of a session's events, and what it takes to carry it on elsewhere.

    Every event is numbered, kept and written under one lock, so the order is the same in the
    journal and on each wire. A write blocks the pump, and with it the engine's bounded output
    buffer fills; nothing else queues.
    """

    def __init__(
        self,
        session: ServedSession,
        socket: ClientSocket,
        *,
        omni: ServedOmni,
        log: SessionEventLog,
        new_id: Callable[[], str],
        random_bytes: RandomBytes,
        spawn: Spawn,
    ) -> None:
        self.state = AttachmentState.ATTACHED
        self.generation = 1
        self._session = session
        self._log = log
        self._spawn = spawn
        self._socket: ClientSocket | None = socket
        self._resume_right = ResumeRight(
            session, omni=omni, log=log, new_id=new_id, random_bytes=random_bytes
        )
        self._writing = asyncio.Lock()
        self._last: SessionClosed | SessionExpired | None = None
        self._introduced = asyncio.Event()  # `session.created` and `session.updated` come first

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._session.session_id

    @property
    def leaves(self) -> bool:
        """Whether its connection is gone and no other may come, so that its slot will be free."""
        if self._resume_right.granted:
            return False
        return self._socket is None or self._socket.released.done()

    # -- events out ---------------------------------------------------------------------------

    async def pump(self) -> None:
        """Carry the session's events out until its last one, whoever is there to read them."""
        try:
            self._session.listen(self._put_now)
            async for event in self._session.events():
                await self._put_all(event)
                if self._last is not None:
                    return
            if self._last is None:
                raise RuntimeError("the engine ended the session's events without closing it")
        except Exception:
            logger.exception("session %s: its events broke off", self.session_id)
            await self._fail()
        finally:
            self.state = AttachmentState.ENDED
            # Nor may the session hold on to this, and to the journal: a ring is freed late.
            self._session.listen(None)

    async def tell(self, socket: ClientSocket, error: DuplexError) -> None:
        """Tell this connection what was wrong with its event, if it still carries the session."""
        await self._introduced.wait()
        async with self._writing:
            if self._socket is socket:
                await self._write_if_shown(self._log.append(error_event(error)))

    async def announce_shutdown(self, time_left_ms: int) -> None:
        """Tell the client, in a dialect that has a word for it, that the server stops."""
        await self._introduced.wait()
        expiring = SessionExpiring(
            session_id=self.session_id, reason=SHUTDOWN, time_left_ms=time_left_ms
        )
        async with self._writing:
            await self._write_if_shown(self._place(expiring))

    def _put_now(self) -> None:
        """Write what is there without waking the pump, unless that would have to wait."""
        socket = self._socket
        if self._writing.locked() or not (socket is None or socket.flows):
            return
        try:
            texts = self._place_all(self._session.take())
            if socket is not None and texts:
                socket.write_now(texts)
        except ClientGone as gone:
            if socket is not None:
                self._lost(socket, gone)
        except Exception:
            logger.exception("session %s: its events broke off", self.session_id)
            self._spawn(self._fail(), f"fail {self.session_id}")
        self._end_if_over()

    async def _put_all(self, event: DuplexEvent) -> None:
        """Write an event and those that are there behind it, at once."""
        async with self._writing:
            await self._flowing()
            await self._write(
                self._place_all(event if self._session.deliverable(event) else self._session.take())
            )
            self._end_if_over()

    def _place_all(self, event: DuplexEvent | None) -> list[str]:
        """Give an event and those behind it their numbers; the texts that the dialect shows."""
        texts: list[str] = []
        # What is not taken yet can still be taken back by a cancel: where a write may wait, all but
        # one event.
        room = MAX_WRITE_CHARS if self._socket is None or self._socket.flows else 1
        while event is not None:
            text = self._place(event)
            if text is not None:
                texts.append(text)
                room -= len(text)
            event = self._session.take() if room > 0 and self._last is None else None
        return texts

    def _place(self, event: DuplexEvent) -> str | None:
        """Give an event its number; returns its text if the dialect shows it."""
        if isinstance(event, SessionCreated):
            return self._place_opening(event)
        if isinstance(event, SessionUpdated):
            self._introduced.set()
            return self._place_opening(event)
        if isinstance(event, LAST_EVENTS):
            self._last = event
        return self._log.append(event)

    def _place_opening(self, event: SessionCreated | SessionUpdated) -> str | None:
        """Tell the credential with what brings it about, if there is anybody to be told."""
        if self._socket is None:
            return self._log.append(event)
        told = self._resume_right.grant(event, self.generation)
        return self._log.append(told, kept=None if told is event else event)

    def _end_if_over(self) -> None:
        if self._last is not None:
            self._release(Farewell(None, close_code(self._last), self._last.reason))

    async def _flowing(self) -> None:
        """Wait until the connection, if there is one, takes what is written."""
        socket = self._socket
        if socket is None or socket.flows:
            return
        try:
            await socket.flowing()
        except ClientGone as gone:
            self._lost(socket, gone)

    async def _write_if_shown(self, text: str | None) -> None:
        await self._write([] if text is None else [text])

    async def _write(self, texts: Sequence[str]) -> None:
        socket = self._socket
        if socket is None or not texts:
            return
        try:
            await socket.write(texts)
        except ClientGone as gone:
            self._lost(socket, gone)

    def _lost(self, socket: ClientSocket, gone: ClientGone) -> None:
        logger.debug("client of %s left: %s", self.session_id, gone.reason)
        self.drop(socket)

    # -- commands in --------------------------------------------------------------------------

    async def submit(self, socket: ClientSocket, command: DuplexCommand) -> None:
        """Hand a command of the connection to the session. Raises ClientGone, DuplexError."""
        if self._socket is not socket:
            raise ClientGone(1006, "another connection carries the session")
        await self._session.submit(command)

    def submit_now(self, socket: ClientSocket, command: DuplexCommand) -> bool:
        """Hand a command over if that need not wait, nor be refused."""
        return self._socket is socket and self._session.submit_now(command)

    def ack(self, socket: ClientSocket, seq: int) -> None:
        """The client has every event up to this one. Raises DuplexError, `invalid_event_ack`."""
        if self._socket is not socket:
            return
        self._log.ack(seq)
        self._resume_right.arrived()

    # -- connections going --------------------------------------------------------------------

    def drop(self, socket: ClientSocket) -> None:
        """A connection is gone: the session waits for the next, or ends with this one."""
        socket.release(None)
        if self._socket is not socket:
            return
        self._socket = None
        if self.state is AttachmentState.ENDED:
            return
        if not self._resume_right.granted:
            self._spawn(self._session.close("disconnect"), f"close {self.session_id}")
            return
        if self.state is AttachmentState.ATTACHED:
            self._detached()

    async def fail(self, socket: ClientSocket) -> None:
        """The server broke over a connection: if that carries the session, both end."""
        if self._socket is socket:
            await self._fail()

    async def _fail(self) -> None:
        failure = DuplexError("internal_error", "The server failed; this session is over.")
        text = self._log.append(error_event(failure))
        self._release(Farewell(text, INTERNAL_ERROR, failure.code))
        await self._session.close("transport_error")

    def _release(self, farewell: Farewell) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.release(farewell)

    def _detached(self) -> None:
        self.state = AttachmentState.DETACHED
        self._spawn(self._resume_right.detaching(), f"detach {self.session_id}")

    # -- connections coming -------------------------------------------------------------------

    async def resume(self, request: ResumeSession, socket: ClientSocket) -> None:
        """Let a new connection carry the session on from the last event it has.

        Raises:
            ClientGone: the new connection broke meanwhile; the session waits for another.
            DuplexError: it may not have the session.
            JournalGap: what it missed cannot be told in full.
        """
        is_free = self._socket is None and self.state is AttachmentState.DETACHED
        self._resume_right.check(request, is_free=is_free)
        if self.state is AttachmentState.RESUMING:
            raise DuplexError(
                "session_resume_conflict", "Another connection is resuming this session."
            )
        self.state = AttachmentState.RESUMING
        try:
            session = await self._resume_right.take_lease()
            self._replace_connection()
            await self._activate(request, socket, session)
        except BaseException:
            self._settle_refused()
            raise

    def _settle_refused(self) -> None:
        if self.state is not AttachmentState.RESUMING:
            return
        if self._socket is not None:
            self.state = AttachmentState.ATTACHED
        else:
            self._detached()

    async def _activate(
        self, request: ResumeSession, socket: ClientSocket, session: DuplexSessionObject
    ) -> None:
        async with self._writing:
            if self.state is AttachmentState.ENDED:
                raise expired_session(self.session_id)
            texts = self._resume_right.tell(request, session, self.generation + 1)
            self._socket = socket
            self.state = AttachmentState.ATTACHED
            self.generation += 1
            await self._write_all(socket, texts)

    async def _write_all(self, socket: ClientSocket, texts: Sequence[str]) -> None:
        try:
            for text in texts:
                await socket.write([text])
        except BaseException:
            self.drop(socket)
            raise

    def _replace_connection(self) -> None:
        """Take the session from the connection that carries it, even from a write that waits."""
        socket, self._socket = self._socket, None
        if socket is None:
            return
        replaced = SessionReplaced(
            session_id=self.session_id, attachment_generation=self.generation
        )
        text = self._log.render_at(replaced, self._log.head + 1)
        socket.release(Farewell(text, NORMAL_CLOSURE, "session_replaced"))
        socket.give_up()


def close_code(event: DuplexEvent) -> int:
    """Choose the WebSocket close code for a session's last event."""
    reason = event.reason if isinstance(event, SessionClosed) else ""
    return _CLOSE_CODES.get(reason, NORMAL_CLOSURE)
