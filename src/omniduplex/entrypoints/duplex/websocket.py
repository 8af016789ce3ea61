"""One client's WebSocket: text frames in as commands, events out in one numbered order."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable

import msgspec
from prometheus_client import Counter
from starlette.websockets import WebSocket, WebSocketDisconnect

from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    decode_command,
    encode_event,
    error_event,
    project,
)
from omniduplex.telemetry.metrics import METRICS

# RFC 6455: a control frame has 125 bytes, two of which are the close code.
_MAX_CLOSE_REASON_BYTES = 123


class ClientGone(Exception):  # noqa: N818 - reads as the state it reports
    """The client closed the connection, lost it, or stopped reading from it."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


@functools.cache
def _sent(kind: type[msgspec.Struct]) -> Counter:
    return METRICS.events.labels(type=kind.__struct_config__.tag)


def _always(_: DuplexEvent) -> bool:
    return True


class ClientSocket:
    """The one writer (and the reader) of a connection.

    Whatever is sent, session events and this connection's own refusals alike, goes through
    `send`, so that `server_event_seq` tells the order of all of them.
    """

    def __init__(
        self,
        websocket: WebSocket,
        dialect: Dialect,
        *,
        new_id: Callable[[], str],
        send_timeout_s: float,
    ) -> None:
        self.dialect = dialect
        self._websocket = websocket
        self._new_id = new_id
        self._send_timeout_s = send_timeout_s
        self._writing = asyncio.Lock()
        self._head = 0

    @property
    def head(self) -> int:
        """Sequence number of the last event sent."""
        return self._head

    async def receive(self) -> DuplexCommand:
        """Read one command.

        Raises:
            ClientGone: there is nothing more to read.
            DuplexError: the frame is no command; the connection goes on.
        """
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise ClientGone(message.get("code", 1006), message.get("reason") or "")
        text = message.get("text")
        if text is None:
            raise DuplexError("bad_event", "Events are JSON in text frames; this frame is binary.")
        return decode_command(text)

    async def send(
        self, event: DuplexEvent, deliverable: Callable[[DuplexEvent], bool] = _always
    ) -> None:
        """Send an event in this connection's dialect, if that has it and it is still wanted.

        Raises:
            ClientGone: it could not be written, or not within the send timeout.
        """
        async with self._writing:
            projected = project(event, self.dialect) if deliverable(event) else None
            if projected is None:
                return
            self._head += 1
            event_id = f"event_{self._new_id()}"
            await self._write(encode_event(projected, event_id=event_id, seq=self._head))
            _sent(type(projected)).inc()

    async def refuse(self, error: DuplexError) -> None:
        """Tell the client what was wrong with its event."""
        await self.send(error_event(error))

    async def close(self, code: int, reason: str) -> None:
        """Send the close frame, unless the connection is gone already."""
        cut = reason.encode()[:_MAX_CLOSE_REASON_BYTES].decode(errors="ignore")
        try:
            async with self._writing, asyncio.timeout(self._send_timeout_s):
                await self._websocket.close(code, cut)
        except (WebSocketDisconnect, RuntimeError, OSError):
            return

    async def _write(self, text: str) -> None:
        # A RuntimeError is the server's word for a frame after its own close frame, as after an
        # unanswered ping; a TimeoutError is an OSError.
        try:
            async with asyncio.timeout(self._send_timeout_s):
                await self._websocket.send_text(text)
        except TimeoutError:
            raise ClientGone(1006, "the client does not read") from None
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ClientGone(1006, str(error)) from None
