"""One client's WebSocket: text frames in as commands, rendered events out, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

from starlette.websockets import WebSocket, WebSocketDisconnect

from omniduplex.protocol.duplex import DuplexCommand, DuplexError, decode_command

# RFC 6455: a control frame has 125 bytes, two of which are the close code.
_MAX_CLOSE_REASON_BYTES = 123
# For the last frames of a connection that was given up: its client may not be there any more.
GOODBYE_TIMEOUT_S = 2.0


class ClientGone(Exception):  # noqa: N818 - reads as the state it reports
    """The client closed the connection, lost it, or stopped reading from it."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class Farewell(NamedTuple):
    """The last that a client gets: an event, if there is one to tell, and the close frame."""

    text: str | None
    code: int
    reason: str


class ClientSocket:
    """The frames of one connection, in both directions.

    `released` is done when the connection has nothing more to do: with the farewell that is due,
    or None when there is nobody to say it to.
    """

    def __init__(self, websocket: WebSocket, *, send_timeout_s: float) -> None:
        self.released: asyncio.Future[Farewell | None] = asyncio.get_running_loop().create_future()
        self._websocket = websocket
        self._send_timeout_s = send_timeout_s
        self._is_given_up = False
        self._deadline: asyncio.Timeout | None = None

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

    async def write(self, text: str) -> None:
        """Send a rendered event.

        Raises:
            ClientGone: it could not be written, not within the send timeout, or nobody wants it.
        """
        if self._is_given_up:
            raise ClientGone(1006, "the connection was given up")
        # A RuntimeError is the server's word for a frame after its own close frame, as after an
        # unanswered ping.
        try:
            async with asyncio.timeout(self._send_timeout_s) as self._deadline:
                await self._websocket.send_text(text)
        except TimeoutError:
            raise ClientGone(1006, "the client does not read") from None
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ClientGone(1006, str(error)) from None
        finally:
            self._deadline = None

    def give_up(self) -> None:
        """Let no write wait any longer, not the one that waits now either."""
        self._is_given_up = True
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time())

    def release(self, farewell: Farewell | None) -> None:
        """Let the connection end; only the first word counts."""
        if not self.released.done():
            self.released.set_result(farewell)

    async def part(self, farewell: Farewell) -> None:
        """Say goodbye, unless the client is gone or does not read."""
        reason = farewell.reason.encode()[:_MAX_CLOSE_REASON_BYTES].decode(errors="ignore")
        timeout_s = GOODBYE_TIMEOUT_S if self._is_given_up else self._send_timeout_s
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                if farewell.text is not None:
                    await self._websocket.send_text(farewell.text)
                await self._websocket.close(farewell.code, reason)
