"""The network under a client: one WebSocket, and the URL it is made for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    InvalidURI,
)

from omniduplex.clients.errors import DuplexConnectionError, DuplexProtocolError
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.transport import Message, Transport
from omniduplex.protocol.duplex import (
    DuplexError,
    RealtimeCommand,
    decode_event,
    encode_command,
)

DEFAULT_PATH = "/v1/realtime"
# Bytes of one server message that the client takes (wire contract, transport).
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# A peer that does not even close holds a client up no longer than this.
CLOSE_TIMEOUT_S = 2.0


class WebSocket(Protocol):
    """As much of a WebSocket connection as a client needs; `websockets` makes them."""

    async def send(self, message: str, /) -> None: ...

    async def recv(self) -> str | bytes: ...

    async def close(self) -> None: ...


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
            reason = f"cannot connect to {_without_query(self._url)}: {why_not(error)}"
            raise DuplexConnectionError(reason) from error

    async def send(self, command: Message) -> None:
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
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

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


def _render(command: Message) -> str:
    if isinstance(command, RealtimeCommand):
        return encode_command(command)
    return msgspec.json.encode(command).decode()


async def connect_with_key(url: str, *, api_key: str | None) -> WebSocket:
    return await connect_websocket(
        url,
        additional_headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
        compression=None,
        max_size=MAX_MESSAGE_BYTES,
        close_timeout=CLOSE_TIMEOUT_S,
    )


def _without_query(url: str) -> str:
    return urlsplit(url)._replace(query="").geturl()


def why_not(error: OSError | InvalidHandshake | InvalidURI) -> str:
    """What went wrong with a connection, and what its user can do about it."""
    if isinstance(error, InvalidURI):
        return "a URL of a server begins with ws:// or wss://, as in ws://127.0.0.1:8000"
    if isinstance(error, InvalidStatus):
        match error.response.status_code:
            case HTTPStatus.UNAUTHORIZED:
                return f"{error}: it wants its API key"
            case HTTPStatus.FORBIDDEN:  # what ASGI servers say of an unknown path, too
                return f"{error}: it lets nobody in, or has no Realtime API at this path"
            case HTTPStatus.NOT_FOUND:
                return f"{error}: there is no Realtime API at this path"
    return str(error)
