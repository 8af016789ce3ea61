"""A client of a server across the network."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Self

from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock, MonotonicClock
from omniduplex.clients.config import SessionConfig
from omniduplex.clients.duplex_trace import DuplexTrace, traced
from omniduplex.clients.errors import DuplexSessionClosedError
from omniduplex.clients.reconnect import ReconnectPolicy, ResumeCredentials, SessionResumer
from omniduplex.clients.websocket_transport import (
    WebSocket,
    WebSocketTransport,
    build_realtime_url,
    connect_with_key,
)
from omniduplex.protocol.duplex import ResumeSession


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
        connect = connect or partial(connect_with_key, api_key=api_key)
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
            DuplexClientError: it was opened before.
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
