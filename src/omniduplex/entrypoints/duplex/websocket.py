"""One client's WebSocket: text frames in as commands, rendered events out, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect

from omniduplex.protocol.duplex import DuplexCommand, DuplexError, close_reason, decode_command

# RFC 6455, section 7.4.1.
NORMAL_CLOSURE, GOING_AWAY, POLICY_VIOLATION, INTERNAL_ERROR = 1000, 1001, 1008, 1011
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


TextSink = Callable[[str], bool]
"""Takes a text frame as it comes, or says that it must be queued."""

TEXT_FRAMES = "omniduplex.text_frames"
"""The ASGI scope extension in which a server offers `TextFrames`, as `frames`."""


class TextFrames(Protocol):
    """Text frames past the ASGI queues: for what comes and goes a dozen times a second.

    ASGI has one awaited call a frame; here several go out by one system call, and a frame that is
    taken as it comes wakes no task.
    """

    sink: TextSink | None
    """Asked first, while no frame before it is queued."""

    @property
    def flows(self) -> bool:
        """Whether what is sent now goes into a buffer with room."""

    async def flowing(self) -> None:
        """Wait for that room, or for the end of the connection."""

    def send_texts(self, texts: Sequence[str]) -> None:
        """Send a frame each, without waiting. Raises OSError when the connection is over."""


class ClientSocket:
    """The frames of one connection, in both directions.

    `released` is done when the connection has nothing more to do: with the farewell that is due,
    or None when there is nobody to say it to.
    """

    def __init__(self, websocket: WebSocket, *, send_timeout_s: float) -> None:
        self.released: asyncio.Future[Farewell | None] = asyncio.get_running_loop().create_future()
        self._websocket = websocket
        offered = (websocket.scope.get("extensions") or {}).get(TEXT_FRAMES, {})
        self._frames: TextFrames | None = offered.get("frames")
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

    def receive_at_once(self, sink: TextSink | None) -> None:
        """Have text frames taken as they come, if the server can; `receive` gets what is left."""
        if self._frames is not None:
            self._frames.sink = sink

    @property
    def flows(self) -> bool:
        """Whether a write now would neither wait nor fill more than a buffer with room."""
        return self._frames is not None and self._frames.flows

    async def flowing(self) -> None:
        """Wait until a write need not wait, as far as the server tells; raises as `write`."""
        if self._frames is not None and not self._frames.flows:
            await self._in_time(self._frames.flowing)

    async def write(self, texts: Sequence[str]) -> None:
        """Send rendered events.

        Raises:
            ClientGone: it could not be written, not within the send timeout, or nobody wants it.
        """
        if self._frames is None:
            for text in texts:
                await self._in_time(functools.partial(self._websocket.send_text, text))
            return
        if not self._frames.flows:
            await self._in_time(self._frames.flowing)
        self._send(self._frames, texts)

    def write_now(self, texts: Sequence[str]) -> None:
        """Send rendered events while it `flows`; raises as `write`."""
        if self._frames is None:
            raise RuntimeError("this server takes one event at a time")
        self._send(self._frames, texts)

    def _send(self, frames: TextFrames, texts: Sequence[str]) -> None:
        self._refuse_if_given_up()
        try:
            frames.send_texts(texts)
        except OSError as error:
            raise ClientGone(1006, str(error)) from None

    async def _in_time(self, send: Callable[[], Awaitable[None]]) -> None:
        self._refuse_if_given_up()
        # A RuntimeError is the server's word for a frame after its own close frame, as after an
        # unanswered ping.
        try:
            async with asyncio.timeout(self._send_timeout_s) as self._deadline:
                await send()
        except TimeoutError:
            raise ClientGone(1006, "the client does not read") from None
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ClientGone(1006, str(error)) from None
        finally:
            self._deadline = None

    def _refuse_if_given_up(self) -> None:
        if self._is_given_up:
            raise ClientGone(1006, "the connection was given up")

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
        timeout_s = GOODBYE_TIMEOUT_S if self._is_given_up else self._send_timeout_s
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                if farewell.text is not None:
                    await self._websocket.send_text(farewell.text)
                await self._websocket.close(farewell.code, close_reason(farewell.reason))
