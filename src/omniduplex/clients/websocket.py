"""A client of a server across the network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock, MonotonicClock
from omniduplex.clients.config import SessionConfig
from omniduplex.clients.errors import DuplexConnectionError, DuplexProtocolError
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.transport import Transport
from omniduplex.protocol.duplex import (
    DuplexCommand,
    DuplexError,
    RealtimeCommand,
    decode_event,
    encode_command,
)

DEFAULT_PATH = "/v1/realtime"
# Bytes of one server message that the client takes (wire contract, transport).
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


class WebSocket(Protocol):
    """As much of a WebSocket connection as a client needs; `websockets` makes them."""

    async def send(self, message: str, /) -> None: ...

    async def recv(self) -> str | bytes: ...

    async def close(self) -> None: ...


class DuplexClient(DuplexClientBase):
    """A session on a server at a `ws://` or `wss://` URL.

    Args:
        heartbeat_interval_s: seconds between signs of life; None sends none.
        handshake_timeout_s: seconds from the connection's start to `session.created`.
        connect: makes the WebSocket for the final URL, to add headers, TLS or a proxy.
        clock: paces `stream_pcm`, heartbeats and acknowledgements.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        config: SessionConfig = SessionConfig(),  # noqa: B008 - frozen
        heartbeat_interval_s: float | None = 30.0,
        handshake_timeout_s: float = 30.0,
        connect: Callable[[str], Awaitable[WebSocket]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.url = build_realtime_url(url, model)
        super().__init__(
            WebSocketTransport(self.url, connect or _connect),
            model=model,
            config=config,
            handshake_timeout_s=handshake_timeout_s,
            heartbeat_interval_s=heartbeat_interval_s,
            clock=clock or MonotonicClock(),
        )


class WebSocketTransport(Transport):
    """JSON text frames, one for each command and event."""

    def __init__(self, url: str, connect: Callable[[str], Awaitable[WebSocket]]) -> None:
        self._url = url
        self._connect = connect
        self._socket: WebSocket | None = None

    async def connect(self) -> None:
        """Make the WebSocket."""
        try:
            self._socket = await self._connect(self._url)
        except (OSError, InvalidHandshake, InvalidURI) as error:
            raise DuplexConnectionError(f"cannot connect to {self._url}: {error}") from error

    async def send(self, command: DuplexCommand | Mapping[str, Any]) -> None:
        """Send one text frame."""
        try:
            await self._opened().send(_render(command))
        except ConnectionClosed as error:
            raise DuplexConnectionError(f"the connection is closed: {error}") from error

    async def receive(self) -> ServerEvent:
        """Read one frame."""
        try:
            return decode_event(await self._opened().recv())
        except ConnectionClosed as error:
            raise DuplexConnectionError(f"the connection is closed: {error}") from error
        except DuplexError as error:
            raise DuplexProtocolError.from_refusal(error) from error

    async def close(self) -> None:
        """Close the WebSocket."""
        if self._socket is not None:
            await self._socket.close()

    def _opened(self) -> WebSocket:
        if self._socket is None:
            raise DuplexConnectionError("not connected")
        return self._socket


def build_realtime_url(
    url: str,
    model: str,
    *,
    autostart: bool = False,
    extra_query: Mapping[str, str] | None = None,
) -> str:
    """The endpoint's URL: the default path when it has none, and the duplex query.

    `autostart` lets the server open a default session before it hears from the client.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    query |= {"duplex": "1", "model": model, **(extra_query or {})}
    query["autostart"] = "1" if autostart else "0"
    path = parts.path if parts.path not in ("", "/") else DEFAULT_PATH
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode(query), ""))


def _render(command: DuplexCommand | Mapping[str, Any]) -> str:
    if isinstance(command, RealtimeCommand):
        return encode_command(command)
    return msgspec.json.encode(command).decode()


async def _connect(url: str) -> WebSocket:
    return await connect_websocket(url, compression=None, max_size=MAX_MESSAGE_BYTES)
