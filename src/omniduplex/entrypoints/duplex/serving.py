"""The WebSocket endpoint of `/v1/realtime` and `/v1/duplex`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from starlette.websockets import WebSocket

from omniduplex.entrypoints.duplex.attachment import SHUTDOWN, SessionAttachment
from omniduplex.entrypoints.duplex.connection import DuplexConnection
from omniduplex.entrypoints.duplex.credential import RandomBytes
from omniduplex.entrypoints.duplex.event_log import render_alone
from omniduplex.entrypoints.duplex.handshake import (
    SUBPROTOCOL,
    Handshake,
    first_command,
    opening_config,
    read_upgrade,
)
from omniduplex.entrypoints.duplex.journal import JournalGap
from omniduplex.entrypoints.duplex.ports import ServedOmni, ServedSession
from omniduplex.entrypoints.duplex.registry import DuplexSessionAttachmentRegistry
from omniduplex.entrypoints.duplex.websocket import (
    INTERNAL_ERROR,
    NORMAL_CLOSURE,
    POLICY_VIOLATION,
    ClientGone,
    ClientSocket,
    Farewell,
)
from omniduplex.entrypoints.patience import SEND_TIMEOUT_S
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCommand,
    DuplexError,
    DuplexSessionConfig,
    ResumeSession,
    ResyncRequired,
    UpdateSession,
    error_event,
)

# Wire contract, transport: how long a client may take for its first event.
CONFIG_TIMEOUT_S = 10.0
# Accepted sockets that may be without their first event: each costs some 60 kB.
MAX_WAITING = 1024
# How long an open waits for the slot of a client that has just left.
DEPARTURE_TIMEOUT_S = 5.0
# How long the connections of a stopped server get for their last frames.
SEE_OFF_TIMEOUT_S = 5.0
JOURNAL_GAP = "journal_gap"

logger = logging.getLogger(__name__)


def random_id() -> str:
    """Return 32 hexadecimal digits."""
    return uuid.uuid4().hex


class DuplexServing:
    """Gives each connection a session, a new one or one that it resumes, until the server stops."""

    def __init__(
        self,
        omni: ServedOmni,
        model: str,
        *,
        new_id: Callable[[], str] = random_id,
        random_bytes: RandomBytes = secrets.token_bytes,
        clock: Callable[[], float] = time.monotonic,
        config_timeout_s: float = CONFIG_TIMEOUT_S,
        send_timeout_s: float = SEND_TIMEOUT_S,
    ) -> None:
        self._omni = omni
        self._model = model
        self._new_id = new_id
        self._config_timeout_s = config_timeout_s
        self._send_timeout_s = send_timeout_s
        self._registry = DuplexSessionAttachmentRegistry(
            omni, new_id=new_id, random_bytes=random_bytes, clock=clock
        )
        self._connections = 0
        self._waiting = 0
        self._no_connection = asyncio.Event()
        self._no_connection.set()
        self._is_draining = False
        self._patience: asyncio.Timeout | None = None

    @property
    def is_draining(self) -> bool:
        """Whether the server stops, and opens no session any more."""
        return self._is_draining

    @property
    def sessions(self) -> int:
        """Sessions that have not ended, with a connection or without."""
        return self._registry.count

    def running(self) -> AbstractAsyncContextManager[None]:
        """Connections are served inside."""
        return self._registry.running()

    async def serve(self, websocket: WebSocket) -> None:
        """Serve one connection from its upgrade to its close frame."""
        offered = websocket.scope.get("subprotocols", [])
        await websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        socket = ClientSocket(websocket, send_timeout_s=self._send_timeout_s)
        self._connections += 1
        self._no_connection.clear()
        try:
            await self._serve_to_its_end(websocket, socket)
            farewell = socket.released.result()
            if farewell is not None:
                await socket.part(farewell)
        finally:
            self._connections -= 1
            if not self._connections:
                self._no_connection.set()

    async def drain(self, timeout_s: float) -> None:
        """Open no session any more, give the live ones this long, then end them and see them off.

        Sessions without a connection may be resumed meanwhile.
        """
        self._is_draining = True
        if timeout_s > 0:
            self._registry.announce_shutdown(int(timeout_s * 1000))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s) as self._patience:
                await self._quiet()
        self._patience = None
        try:
            async with asyncio.timeout(SEE_OFF_TIMEOUT_S):
                await self._omni.close_all_sessions(SHUTDOWN)
                await self._quiet()
        except TimeoutError:
            logger.warning(
                "%d connections did not end within %g s", self._connections, SEE_OFF_TIMEOUT_S
            )

    def hurry(self) -> None:
        """Give sessions that are being drained no more time."""
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def _quiet(self) -> None:
        await self._registry.quiet()
        await self._no_connection.wait()

    async def _serve_to_its_end(self, websocket: WebSocket, socket: ClientSocket) -> None:
        dialect = Dialect.DUPLEX
        try:
            handshake = read_upgrade(
                websocket.url.path, websocket.query_params, websocket.headers, self._model
            )
            dialect = handshake.dialect
            await self._serve(socket, handshake)
        except ClientGone as gone:
            logger.debug("a client left before it had a session: %d", gone.code)
            socket.release(None)
        except DuplexError as error:
            # The contract lets a route that is not there close normally.
            code = NORMAL_CLOSURE if error.code == "unsupported" else POLICY_VIOLATION
            socket.release(self._refusal(error, code, dialect))
        except Exception:
            logger.exception("a connection failed")
            failure = DuplexError("internal_error", "The server failed; this session is over.")
            socket.release(self._refusal(failure, INTERNAL_ERROR, dialect))

    async def _serve(self, socket: ClientSocket, handshake: Handshake) -> None:
        first = await self._first_command(socket, handshake)
        try:
            attachment = await self._attach(socket, handshake, first)
        except DuplexError as error:
            if first is not None and error.event_id is None:
                error.event_id = first.event_id
            raise
        if attachment is None:
            return
        name, dialect = attachment.session_id, handshake.dialect.value
        logger.info("session %s: connected, %s dialect", name, dialect)
        pending = None if isinstance(first, ResumeSession | UpdateSession) else first
        try:
            await DuplexConnection(attachment, socket).run(pending)
        finally:
            logger.info("session %s: disconnected", name)

    async def _attach(
        self, socket: ClientSocket, handshake: Handshake, first: DuplexCommand | None
    ) -> SessionAttachment | None:
        """Give the connection its session; None when it was told that it needs another."""
        if isinstance(first, ResumeSession):
            try:
                return await self._registry.resume(first, socket)
            except JournalGap as gap:
                socket.release(self._resync(first.session_id, gap))
                return None
        if self._is_draining:
            raise DuplexError("server_draining", "The server stops and opens no session any more.")
        session = await self._open(opening_config(handshake, first))
        return self._registry.open(session, handshake.dialect, socket)

    async def _first_command(
        self, socket: ClientSocket, handshake: Handshake
    ) -> DuplexCommand | None:
        if self._waiting >= MAX_WAITING and not handshake.opens_at_once:
            message = "Too many connections are without their first event."
            raise DuplexError("resource_exhausted", message)
        self._waiting += 1
        try:
            return await first_command(socket, handshake, self._config_timeout_s)
        finally:
            self._waiting -= 1

    async def _open(self, config: DuplexSessionConfig) -> ServedSession:
        """Open a session; one whose client has left may have to make room for it first.

        A client that comes back at once would else meet itself.
        """
        while True:
            ended = self._registry.ended
            try:
                return await self._omni.open_session(config)
            except DuplexError as refused:
                if refused.code != "resource_exhausted":
                    raise
                if not await self._registry.departure(ended, DEPARTURE_TIMEOUT_S):
                    raise

    def _refusal(self, error: DuplexError, code: int, dialect: Dialect) -> Farewell:
        text = render_alone(error_event(error), dialect, seq=1, new_id=self._new_id)
        return Farewell(text, code, error.code)

    def _resync(self, session_id: str, gap: JournalGap) -> Farewell:
        needed = ResyncRequired(session_id=session_id, reason=JOURNAL_GAP)
        text = render_alone(needed, Dialect.DUPLEX, seq=gap.head, new_id=self._new_id)
        return Farewell(text, POLICY_VIOLATION, JOURNAL_GAP)
