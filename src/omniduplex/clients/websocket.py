"""A client of a server across the network."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    InvalidURI,
)

from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock, MonotonicClock
from omniduplex.clients.config import SessionConfig
from omniduplex.clients.duplex_trace import DuplexTrace, traced
from omniduplex.clients.errors import (
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
)
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.reconnect import ReconnectPolicy, ResumeCredentials, SessionResumer
from omniduplex.clients.transport import Transport
from omniduplex.protocol.duplex import (
    DuplexCommand,
    DuplexError,
    RealtimeCommand,
    ResumeSession,
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


class DuplexClient(DuplexClientBase):
    """A session on a server at a `ws://` or `wss://` URL.

    Args:
        reconnect: how a session is taken up again after its connection broke; None gives it up.
        heartbeat_interval_s: seconds between signs of life; None sends none.
        handshake_timeout_s: seconds from a connection's start to the session.
        api_key: the server's key, sent as a bearer token; a `connect` of your own sends its own.
        connect: makes the WebSocket for the final URL, to add headers, TLS or a proxy.
        trace: notes every message, for one client.
        clock: paces `stream_pcm`, heartbeats, acknowledgements and the waits between attempts.
        rng: spreads these waits, so that clients that were cut off together do not come together.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        config: SessionConfig = SessionConfig(),  # noqa: B008 - frozen
        reconnect: ReconnectPolicy | None = ReconnectPolicy(),  # noqa: B008 - frozen
        heartbeat_interval_s: float | None = 30.0,
        handshake_timeout_s: float = 30.0,
        api_key: str | None = None,
        connect: Callable[[str], Awaitable[WebSocket]] | None = None,
        trace: DuplexTrace | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.url = build_realtime_url(url, model)
        clock = clock or MonotonicClock()
        connect = connect or partial(_connect, api_key=api_key)
        transport = traced(WebSocketTransport(self.url, connect), trace)
        self._resumer = SessionResumer(
            transport,
            reconnect or ReconnectPolicy(max_attempts=1),
            clock=clock,
            rng=rng or random.Random(),
            timeout_s=handshake_timeout_s,
        )
        self._credentials: ResumeCredentials | None = None
        super().__init__(
            transport,
            model=model,
            config=config,
            handshake_timeout_s=handshake_timeout_s,
            heartbeat_interval_s=heartbeat_interval_s,
            clock=clock,
            resumer=self._resumer if reconnect else None,
        )

    @classmethod
    def resume(
        cls,
        credentials: ResumeCredentials,
        *,
        config: SessionConfig = SessionConfig(),  # noqa: B008 - frozen
        reconnect: ReconnectPolicy | None = ReconnectPolicy(),  # noqa: B008 - frozen
        heartbeat_interval_s: float | None = 30.0,
        handshake_timeout_s: float = 30.0,
        api_key: str | None = None,
        connect: Callable[[str], Awaitable[WebSocket]] | None = None,
        trace: DuplexTrace | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> Self:
        """A client that takes a session over from the one that exported the credentials.

        `config` is only read for the audio formats, which have to be those of the session; its
        other fields change nothing. A resume that is refused raises DuplexSessionClosedError from
        `open`.
        """
        client = cls(
            credentials.url,
            model=credentials.model,
            config=config,
            reconnect=reconnect,
            heartbeat_interval_s=heartbeat_interval_s,
            handshake_timeout_s=handshake_timeout_s,
            api_key=api_key,
            connect=connect,
            trace=trace,
            clock=clock,
            rng=rng,
        )
        client._credentials = credentials
        return client

    async def open(self) -> None:
        """Connect and open the session, or take it over.

        Raises:
            DuplexConnectionError: no connection, or no session in time.
            DuplexProtocolError: the server refused to open one.
            DuplexSessionClosedError: the server did not give the session back.
        """
        given = self._credentials
        if given is None:
            await super().open()
            return
        request = ResumeSession(
            session_id=given.session_id,
            resume_token=given.resume_token,
            last_received_server_event_seq=given.last_server_event_seq,
            event_id=next(self._event_ids),
        )
        self._session = (await self._link.take_over(request, self._resumer)).session

    @property
    def resume_token(self) -> str | None:
        """The secret that resumes the session; None when it cannot be resumed."""
        return self._link.resume_token

    @property
    def commands_in_doubt(self) -> int:
        """How many commands went to connections that broke, and may not have arrived.

        An upper bound: what the server has shown to have received by answering a heartbeat does
        not count. None of them is sent again.
        """
        return self._link.outbox.in_doubt

    @property
    def commands_held(self) -> int:
        """How many commands wait for the connection to be replaced."""
        return self._link.outbox.held

    @property
    def events_missed(self) -> int:
        """How many events never came, by the numbers of those that did."""
        return self._link.acks.missed

    def export_credentials(self) -> ResumeCredentials:
        """What another process needs to take the session over; keep it as a secret.

        From the first export on only events that the newest export covers are acknowledged.

        Raises:
            DuplexSessionClosedError: the session is over, or cannot be resumed.
        """
        if self.resume_token is None:
            ended = self._link.ended or self._session is None
            reason = self._link.end_reason if ended else "it cannot be resumed"
            raise DuplexSessionClosedError(reason)
        return ResumeCredentials(
            url=self.url,
            model=self.model,
            session_id=self.session_id,
            resume_token=self.resume_token,
            last_server_event_seq=self._link.acks.export(),
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
            reason = f"cannot connect to {_without_query(self._url)}: {_told(error)}"
            raise DuplexConnectionError(reason) from error

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


def _render(command: DuplexCommand | Mapping[str, Any]) -> str:
    if isinstance(command, RealtimeCommand):
        return encode_command(command)
    return msgspec.json.encode(command).decode()


async def _connect(url: str, *, api_key: str | None) -> WebSocket:
    return await connect_websocket(
        url,
        additional_headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
        compression=None,
        max_size=MAX_MESSAGE_BYTES,
        close_timeout=CLOSE_TIMEOUT_S,
    )


def _without_query(url: str) -> str:
    return urlsplit(url)._replace(query="").geturl()


def _told(error: OSError | InvalidHandshake | InvalidURI) -> str:
    """What went wrong, and what its user can do about it."""
    if isinstance(error, InvalidURI):
        return "a URL of a server begins with ws:// or wss://, as in ws://127.0.0.1:8000"
    if isinstance(error, InvalidStatus):
        match error.response.status_code:
            case HTTPStatus.UNAUTHORIZED:
                return f"{error}: it wants its API key"
            case HTTPStatus.NOT_FOUND:
                return f"{error}: no sessions there; a server in session_mode: turn has none"
    return str(error)
