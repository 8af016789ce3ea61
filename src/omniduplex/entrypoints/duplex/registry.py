"""All sessions of one server process, by id, each with its attachment and its pump."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from omniduplex.entrypoints.duplex.attachment import SessionAttachment
from omniduplex.entrypoints.duplex.credential import RandomBytes
from omniduplex.entrypoints.duplex.event_log import SessionEventLog
from omniduplex.entrypoints.duplex.ports import ServedOmni, ServedSession
from omniduplex.entrypoints.duplex.resume import expired_session
from omniduplex.entrypoints.duplex.websocket import ClientSocket
from omniduplex.protocol.duplex import Dialect, DuplexError, ResumeSession

logger = logging.getLogger(__name__)


class DuplexSessionAttachmentRegistry:
    """Finds the session that a resume names, and runs what outlives a connection."""

    def __init__(
        self,
        omni: ServedOmni,
        *,
        new_id: Callable[[], str],
        random_bytes: RandomBytes,
        clock: Callable[[], float],
    ) -> None:
        self._omni = omni
        self._new_id = new_id
        self._random_bytes = random_bytes
        self._clock = clock
        self._attachments: dict[str, SessionAttachment] = {}
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = 0
        self._next_end = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve sessions inside; on leaving, whatever still runs for one is cancelled."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks:
                    task.cancel()

    @property
    def count(self) -> int:
        """Sessions that have not ended, attached or not."""
        return len(self._attachments)

    def open(
        self, session: ServedSession, dialect: Dialect, socket: ClientSocket
    ) -> SessionAttachment:
        """Let a new session's connection carry it.

        Raises:
            RuntimeError: the server does not run (any more).
        """
        if self._group is None:
            raise RuntimeError("sessions are carried only while the server runs")
        attachment = SessionAttachment(
            session,
            socket,
            omni=self._omni,
            log=SessionEventLog(dialect, new_id=self._new_id, clock=self._clock),
            new_id=self._new_id,
            random_bytes=self._random_bytes,
            spawn=self._spawn,
        )
        self._attachments[session.session_id] = attachment
        self._quiet.clear()
        self._spawn(self._carry(attachment), f"pump {session.session_id}")
        return attachment

    @property
    def ended(self) -> int:
        """Sessions that have ended since the server began."""
        return self._ended

    async def departure(self, since: int, timeout_s: float) -> bool:
        """Wait until more sessions have ended, if there is one that nobody can carry on.

        False when there is none, or it takes too long.
        """
        if self._ended > since:
            return True
        if not any(attachment.leaves for attachment in self._attachments.values()):
            return False
        try:
            async with asyncio.timeout(timeout_s):
                await self._next_end.wait()
        except TimeoutError:
            return False
        return True

    async def resume(self, request: ResumeSession, socket: ClientSocket) -> SessionAttachment:
        """Let a new connection carry a session on; raises as `SessionAttachment.resume`.

        Cancelling this gives the connection up, while what the engine was asked is still seen
        through: the session waits for another connection, its token as before.
        """
        if request.last_received_server_event_seq < 0:
            raise DuplexError(
                "invalid_session_resume",
                "The last event received cannot be a negative one.",
                param="last_received_server_event_seq",
            )
        attachment = self._attachments.get(request.session_id)
        if attachment is None:
            raise expired_session(request.session_id)
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._spawn(_activate(attachment, request, socket, outcome), f"resume {request.session_id}")
        try:
            await outcome
        except asyncio.CancelledError:
            socket.give_up()
            attachment.drop(socket)
            raise
        return attachment

    def announce_shutdown(self, time_left_ms: int) -> None:
        """Tell every client that the server stops."""
        for attachment in self._attachments.values():
            work = attachment.announce_shutdown(time_left_ms)
            self._spawn(work, f"announce {attachment.session_id}")

    async def quiet(self) -> None:
        """Wait until no session is left."""
        await self._quiet.wait()

    async def _carry(self, attachment: SessionAttachment) -> None:
        try:
            await attachment.pump()
        finally:
            del self._attachments[attachment.session_id]
            self._ended += 1
            self._next_end.set()
            self._next_end = asyncio.Event()
            if not self._attachments:
                self._quiet.set()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        if self._group is None:
            logger.debug("%s: too late, the server has stopped", name)
            work.close()
            return
        task = self._group.create_task(_supervised(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _supervised(work: Coroutine[Any, Any, None], name: str) -> None:
    """A failure of one session's task must not end those of the others."""
    try:
        await work
    except Exception:
        logger.exception("%s failed", name)


async def _activate(
    attachment: SessionAttachment,
    request: ResumeSession,
    socket: ClientSocket,
    outcome: asyncio.Future[None],
) -> None:
    try:
        await attachment.resume(request, socket)
    except Exception as error:
        if outcome.done():
            logger.debug("an abandoned resume came to nothing: %s", error)
        else:
            outcome.set_exception(error)
    else:
        if not outcome.done():
            outcome.set_result(None)
    finally:
        outcome.cancel()
