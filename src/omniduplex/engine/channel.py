"""The queue between threads and one event loop: many producers, one consumer callback."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

# The loop gets its turn after so many items, however many are waiting.
MAX_ITEMS_PER_CALLBACK = 256
DEFAULT_MAX_ITEMS = 65536

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ChannelFull(Exception):  # noqa: N818 - reads as the state it reports
    """The consumer is so far behind that the channel takes no more."""


class ChannelClosed(Exception):  # noqa: N818 - reads as the state it reports
    """Nobody consumes the channel any more: it was closed, or its loop was."""


class Channel(Generic[T]):
    """Carries items from any thread to `consume`, in order, on the loop it is bound to.

    Items put before `bind` wait for it. An item whose consumption fails is logged and left behind.
    """

    def __init__(self, consume: Callable[[T], None], *, max_items: int = DEFAULT_MAX_ITEMS) -> None:
        self._consume = consume
        self._max_items = max_items
        self._lock = threading.Lock()
        self._items: deque[T] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake = False  # a drain is scheduled or running
        self._closed = False

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start consuming on this loop, once and for all."""
        with self._lock:
            if self._loop is not None:
                raise RuntimeError("a channel is bound to one loop, once")
            self._loop = loop
            must_wake = self._must_wake()
        if must_wake:
            self._wake(loop)

    def put(self, item: T) -> None:
        """Hand an item over without blocking, from any thread.

        Raises:
            ChannelFull: `max_items` are waiting.
            ChannelClosed: it would never be consumed.
        """
        with self._lock:
            if self._closed:
                raise ChannelClosed
            if len(self._items) >= self._max_items:
                raise ChannelFull
            self._items.append(item)
            must_wake = self._must_wake()
            loop = self._loop
        # Outside the lock: waking a loop is a system call.
        if must_wake and loop is not None and not self._wake(loop):
            raise ChannelClosed

    def close(self) -> None:
        """Forget what waits and take nothing more; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._items.clear()

    def _must_wake(self) -> bool:
        if self._awake or self._loop is None or not self._items:
            return False
        self._awake = True
        return True

    def _wake(self, loop: asyncio.AbstractEventLoop) -> bool:
        try:
            loop.call_soon_threadsafe(self._drain, loop)
        except RuntimeError:  # how asyncio and uvloop refuse work for a closed loop
            self.close()
            return False
        return True

    def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(MAX_ITEMS_PER_CALLBACK):
            with self._lock:
                if not self._items:
                    self._awake = False
                    return
                item = self._items.popleft()
            try:
                self._consume(item)
            # No task runs here that could be cancelled: a CancelledError is the item's own.
            except (Exception, asyncio.CancelledError):
                logger.exception("an item of a channel could not be consumed")
        loop.call_soon(self._drain, loop)
