"""Turns work that pushes its results from another thread into an iterator that can be cancelled."""

from collections.abc import Callable, Generator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.02  # how long a silent producer can hide a cancellation


def pump(
    start: Callable[[Callable[[T], None]], Future[None]], cancelled: Callable[[], bool]
) -> Generator[T, None, None]:
    """Yield what the work emits until it ends or `cancelled()`; then cancel its future.

    An exception of the work is raised here. Work that a future cannot interrupt must itself
    watch for the end, and what it emits after that goes nowhere.
    """
    events: SimpleQueue[tuple[T] | None] = SimpleQueue()
    future = start(lambda event: events.put((event,)))
    future.add_done_callback(lambda _: events.put(None))
    try:
        while not cancelled():
            try:
                event = events.get(timeout=POLL_S)
            except Empty:
                continue
            if event is None:
                future.result()
                return
            yield event[0]
    finally:
        future.cancel()
