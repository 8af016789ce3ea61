"""One connection that carries a session: the client's events in, until one of them ends."""

from __future__ import annotations

import asyncio
import functools
import logging

import msgspec
from prometheus_client import Counter

from omniduplex.entrypoints.duplex.attachment import SessionAttachment
from omniduplex.entrypoints.duplex.websocket import ClientGone, ClientSocket
from omniduplex.protocol.duplex import (
    AppendAudio,
    DuplexCommand,
    DuplexError,
    EventAck,
    ResumeSession,
    decode_command,
)
from omniduplex.telemetry.metrics import METRICS

# A second of 24 kHz PCM16 in base64: more than a frame of audio ever has.
MAX_AT_ONCE_CHARS = 64 * 1024

logger = logging.getLogger(__name__)


class DuplexConnection:
    """Hands a client's events to its session; however it ends, the session knows."""

    def __init__(self, attachment: SessionAttachment, socket: ClientSocket) -> None:
        self._attachment = attachment
        self._socket = socket
        self._idle = False  # the receive loop waits for a frame

    async def run(self, pending: DuplexCommand | None) -> None:
        """Run the client event still pending, then everything else, until the socket is free."""
        try:
            await self._receive_until_released(pending)
        except Exception:
            await self._attachment.fail(self._socket)
            raise
        finally:
            self._attachment.drop(self._socket)

    async def _receive_until_released(self, pending: DuplexCommand | None) -> None:
        name = f"receive {self._attachment.session_id}"
        async with asyncio.TaskGroup() as tasks:
            receiving = tasks.create_task(self._receive_loop(pending), name=name)
            self._socket.receive_at_once(self._take_at_once)
            # A crash of the other task cancels this wait, but not the farewell that it ends in.
            await asyncio.shield(self._socket.released)
            self._socket.receive_at_once(None)
            receiving.cancel()

    async def _receive_loop(self, pending: DuplexCommand | None) -> None:
        try:
            if pending is not None:
                await self._take_or_refuse(pending)
            while True:
                await self._take_or_refuse(None)
        except ClientGone as gone:
            logger.debug("client of %s left: %d", self._attachment.session_id, gone.code)
            self._socket.release(None)

    async def _take_or_refuse(self, command: DuplexCommand | None) -> None:
        try:
            command = command or await self._next()
            await self._take(command)
        except DuplexError as error:
            if command is not None and error.event_id is None:
                error.event_id = command.event_id
            await self._attachment.tell(self._socket, error)

    async def _next(self) -> DuplexCommand:
        self._idle = True
        try:
            return await self._socket.receive()
        finally:
            self._idle = False

    def _take_at_once(self, text: str) -> bool:
        """Take what comes with every frame of audio, unless the receive loop is to see it."""
        if not self._idle or len(text) > MAX_AT_ONCE_CHARS:
            return False
        try:
            command = decode_command(text)
            match command:
                case AppendAudio():
                    is_taken = self._attachment.submit_now(self._socket, command)
                    if is_taken:
                        _accepted(AppendAudio).inc()
                    return is_taken
                case EventAck():
                    self._attachment.ack(self._socket, command.server_event_seq)
                    return True
                case _:
                    return False
        except Exception as error:
            # It changed nothing; the receive loop meets the same and answers it.
            logger.debug("not taken at once: %s", error)
            return False

    async def _take(self, command: DuplexCommand) -> None:
        match command:
            case EventAck():
                self._attachment.ack(self._socket, command.server_event_seq)
            case ResumeSession():
                raise DuplexError(
                    "unsupported_session_resume", "`session.resume` can only be the first event."
                )
            case _:
                await self._submit(command)

    async def _submit(self, command: DuplexCommand) -> None:
        await self._attachment.submit(self._socket, command)
        _accepted(type(command)).inc()


@functools.cache
def _accepted(kind: type[msgspec.Struct]) -> Counter:
    return METRICS.commands.labels(type=kind.__struct_config__.tag)
