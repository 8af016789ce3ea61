"""Cancel a coroutine at each place where it waits, one place after the other."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CancelledAt(Awaitable[T], Generic[T]):
    """Awaits `work` and cancels the task that does, once, at suspension number `nth`.

    An early cancel comes while the thing that is waited for is still to come, and takes that along
    where asyncio would. A late one comes when it has happened and before `work` learns of it: what
    it was is lost. Past its last suspension `work` is simply awaited, and `cancelled` stays False.
    """

    def __init__(self, work: Coroutine[Any, Any, T], nth: int, *, late: bool) -> None:
        self.cancelled = False
        self._work = work
        self._nth = nth
        self._late = late

    def __await__(self) -> Generator[Any, Any, T]:
        advance: Callable[[], Any] = functools.partial(self._work.send, None)
        for index in itertools.count():
            try:
                waiting = advance()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                if index == self._nth and not self._late:
                    self._cancel()
                yield waiting
                if index == self._nth and self._late:
                    self._cancel()
                    yield  # the task wakes up at once, and cancelled
            except BaseException as error:
                advance = functools.partial(self._work.throw, error)
            else:
                advance = functools.partial(self._work.send, None)
        raise AssertionError("counting does not end")

    def _cancel(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.cancelled = True
        task.cancel()


async def cancelled_everywhere(
    make: Callable[[], Coroutine[Any, Any, T]],
) -> AsyncIterator[T | None]:
    """Run what `make` gives again and again, cancelled at one more place each time.

    Yields after each run: its result, or None when it was cancelled. Any other outcome of a
    cancelled run is raised. Ends after the runs that no cancel reached any more.
    """
    for late in (False, True):
        for nth in itertools.count():
            point = CancelledAt(make(), nth, late=late)
            task = asyncio.ensure_future(_await(point))
            result: T | None = None
            try:
                result = await task
            except asyncio.CancelledError:
                assert point.cancelled, "it was cancelled by somebody else"
            yield result
            if not point.cancelled:
                break


async def _await(point: CancelledAt[T]) -> T:
    return await point
