"""One connection with an open session: a receive loop and an emit pump until either ends."""

from __future__ import annotations

import asyncio
import functools
import logging

import msgspec
from prometheus_client import Counter

from omniduplex.entrypoints.duplex.ports import ServedSession
from omniduplex.entrypoints.duplex.websocket import ClientGone, ClientSocket
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    EventAck,
    ResumeSession,
    SessionClosed,
    SessionExpired,
    UpdateSession,
)
from omniduplex.telemetry.metrics import METRICS

SHUTDOWN = "shutdown"
# RFC 6455, section 7.4.1.
NORMAL_CLOSURE, GOING_AWAY = 1000, 1001

logger = logging.getLogger(__name__)


class DuplexConnection:
    """Carries one session over one socket; however it ends, the session is released."""

    def __init__(self, session: ServedSession, socket: ClientSocket) -> None:
        self._session = session
        self._socket = socket

    async def run(self, pending: DuplexCommand | None) -> None:
        """Run the client event still pending, then everything else, until the end."""
        reason = "disconnect"
        try:
            await self._run_loops(pending)
        except Exception:
            reason = "transport_error"
            raise
        finally:
            await self._session.close(reason)

    async def _run_loops(self, pending: DuplexCommand | None) -> None:
        name = self._session.session_id
        async with asyncio.TaskGroup() as tasks:
            loops = {
                tasks.create_task(self._receive_loop(pending), name=f"receive {name}"),
                tasks.create_task(self._emit_pump(), name=f"emit {name}"),
            }
            await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
            for loop in loops:
                loop.cancel()

    async def _receive_loop(self, pending: DuplexCommand | None) -> None:
        try:
            if pending is not None:
                await self._take_or_refuse(pending)
            while True:
                await self._take_or_refuse(None)
        except ClientGone as gone:
            logger.debug("client of %s left: %d", self._session.session_id, gone.code)

    async def _take_or_refuse(self, command: DuplexCommand | None) -> None:
        try:
            command = command or await self._socket.receive()
            await self._take(command)
        except DuplexError as error:
            if command is not None and error.event_id is None:
                error.event_id = command.event_id
            await self._socket.refuse(error)

    async def _take(self, command: DuplexCommand) -> None:
        match command:
            case EventAck():
                self._check_ack(command.server_event_seq)
            case ResumeSession():
                raise DuplexError(
                    "invalid_session_resume", "`session.resume` can only be the first event."
                )
            case UpdateSession(session=patch):
                await self._submit(command)
                if isinstance(patch.extensions, tuple) and "duplex" in patch.extensions:
                    self._socket.dialect = Dialect.DUPLEX
            case _:
                await self._submit(command)

    async def _submit(self, command: DuplexCommand) -> None:
        await self._session.submit(command)
        _accepted(type(command)).inc()

    def _check_ack(self, seq: int) -> None:
        if not 0 <= seq <= self._socket.head:
            raise DuplexError(
                "invalid_event_ack",
                f"Event {seq} was not sent; the last one was {self._socket.head}.",
                param="server_event_seq",
            )

    async def _emit_pump(self) -> None:
        try:
            async for event in self._session.events():
                await self._socket.send(event, self._session.deliverable)
                if isinstance(event, SessionClosed | SessionExpired):
                    await self._socket.close(close_code(event), event.reason)
                    return
        except ClientGone as gone:
            logger.debug("client of %s left: %s", self._session.session_id, gone.reason)
            return
        raise RuntimeError("the engine ended the session's events without closing it")


def close_code(event: DuplexEvent) -> int:
    """Choose the WebSocket close code for a session's last event."""
    going_away = isinstance(event, SessionClosed) and event.reason == SHUTDOWN
    return GOING_AWAY if going_away else NORMAL_CLOSURE


@functools.cache
def _accepted(kind: type[msgspec.Struct]) -> Counter:
    return METRICS.commands.labels(type=kind.__struct_config__.tag)
