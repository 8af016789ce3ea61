"""A WebSocket that carries plain OpenAI Realtime JSON, for whoever measures through one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from omniduplex.benchmarks.turns.line import LineError


class OpenAISocket:
    """One connection; every way in which it breaks is a `LineError`."""

    def __init__(self, url: str, api_key: str | None) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._socket: ClientConnection | None = None

    async def open(self) -> None:
        """Connect."""
        try:
            self._socket = await connect(
                self._url, compression=None, max_size=None, additional_headers=self._headers
            )
        except (OSError, InvalidHandshake, InvalidURI) as error:
            raise LineError(f"cannot connect to {self._url}: {error}") from error

    async def close(self) -> None:
        """Disconnect; harmless when there is no connection."""
        if self._socket is not None:
            await self._socket.close()

    async def send(self, message: dict[str, Any]) -> None:
        """Send one client event."""
        assert self._socket is not None
        try:
            await self._socket.send(msgspec.json.encode(message).decode())
        except ConnectionClosed as error:
            raise LineError(f"the connection is closed: {error}") from error

    async def messages(self) -> AsyncIterator[str | bytes]:
        """The server's events as they come, until it closes normally."""
        assert self._socket is not None
        try:
            async for message in self._socket:
                yield message
        except ConnectionClosed as error:
            raise LineError(f"the connection is closed: {error}") from error


class OpenAIConversation(ABC):
    """A session over one connection: begun when its context begins, over with it."""

    _socket: OpenAISocket

    async def __aenter__(self) -> Self:
        await self._socket.open()
        try:
            await self._begin()
        except BaseException:
            await self._socket.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._socket.close()

    @abstractmethod
    async def _begin(self) -> None:
        """Configure the session; raises `LineError` when it is refused."""
