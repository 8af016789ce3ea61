"""A bounded queue between the one reader of a session and whoever listens."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from omniduplex.clients.errors import DuplexSessionClosedError

T = TypeVar("T")

# Items that a slow consumer may fall behind before it loses the oldest (wire contract 12.12).
BUFFER_LIMIT = 1024


class Subscription(Generic[T]):
    """Everything pushed from now on, in order, for one consumer.

    It ends where the session ends, and raises DuplexSessionClosedError there when that was not
    the client's or the server's plain goodbye. `lost` counts items that a slow consumer missed.
    """

    def __init__(self, limit: int = BUFFER_LIMIT) -> None:
        self.lost = 0
        self._items: deque[T] = deque()
        self._limit = limit
        self._ready = asyncio.Event()
        self._ended = False
        self._failure: str | None = None

    def push(self, item: T) -> None:
        """Hand an item over, at the price of the oldest one when the buffer is full."""
        if len(self._items) == self._limit:
            self._items.popleft()
            self.lost += 1
        self._items.append(item)
        self._ready.set()

    def end(self, failure: str | None = None) -> None:
        """Nothing follows; `failure` is what the consumer shall stumble over."""
        self._ended = True
        self._failure = failure
        self._ready.set()

    def drain(self) -> list[T]:
        """Everything that waits here now, without waiting for more."""
        items = list(self._items)
        self._items.clear()
        return items

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._failure is not None:
                raise DuplexSessionClosedError(self._failure)
            if self._ended:
                raise StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
        return self._items.popleft()
