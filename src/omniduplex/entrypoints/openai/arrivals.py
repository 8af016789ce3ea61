"""Connections that have not said yet what they want: bounded in number, and each in time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# How long a request may take to come, to the end of its headers.
ARRIVAL_TIMEOUT_S = 10.0
# Each costs a file descriptor and a few kB; who speaks at once is here for milliseconds.
MAX_ARRIVALS = 1024
# A key of a megabyte is still answered (401); what goes on is only meant to fill our memory.
MAX_HEAD_BYTES = 2 * 1024 * 1024
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)


class Lobby:
    """Those who arrive at one server; when there are too many, whoever waits longest has to go.

    So a flood of silent connections keeps out nobody who speaks at once.
    """

    def __init__(
        self, *, max_arrivals: int = MAX_ARRIVALS, timeout_s: float = ARRIVAL_TIMEOUT_S
    ) -> None:
        self._max_arrivals = max_arrivals
        self._timeout_s = timeout_s
        self._timers: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    @property
    def waiting(self) -> int:
        """Connections that arrive now."""
        return len(self._timers)

    def holds(self, transport: asyncio.Transport) -> bool:
        """Whether this one arrives now."""
        return transport in self._timers

    def enter(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """A connection begins to arrive; its time runs from the first call on."""
        if transport in self._timers:
            return
        self._timers[transport] = loop.call_later(self._timeout_s, self._turn_away, transport)
        if len(self._timers) > self._max_arrivals:
            self._turn_away(next(iter(self._timers)))

    def leave(self, transport: asyncio.Transport) -> None:
        """It has said what it wants, or is gone."""
        timer = self._timers.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def _turn_away(self, transport: asyncio.Transport) -> None:
        self.leave(transport)
        transport.abort()


class ArrivingProtocol(HttpToolsProtocol):
    """HTTP that waits in a lobby until the headers of a request are there."""

    _head_bytes = 0

    def __init__(self, *args: Any, lobby: Lobby, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lobby = lobby

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let a new connection in, as far as the lobby."""
        super().connection_made(transport)
        self._lobby.enter(transport, self.loop)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless the headers have no end."""
        if self._lobby.holds(self.transport):
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._lobby.leave(self.transport)
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """The first byte of a request has come, of the first one or of a later one."""
        super().on_message_begin()
        self._lobby.enter(self.transport, self.loop)

    def on_headers_complete(self) -> None:
        """It is known what is wanted."""
        self._lobby.leave(self.transport)
        self._head_bytes = 0
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the connection go."""
        self._lobby.leave(self.transport)
        super().connection_lost(exc)
