import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from omniduplex.models.local.pump import pump


def test_events_arrive_in_order_until_the_work_ends() -> None:
    with ThreadPoolExecutor(1) as pool:

        def start(emit: Callable[[int], None]) -> Future[None]:
            def work() -> None:
                for value in range(100):
                    emit(value)

            return pool.submit(work)

        assert list(pump(start, lambda: False)) == list(range(100))


def test_error_of_the_work_follows_what_it_emitted() -> None:
    with ThreadPoolExecutor(1) as pool:

        def start(emit: Callable[[int], None]) -> Future[None]:
            def work() -> None:
                emit(1)
                raise KeyError("broken")

            return pool.submit(work)

        events = pump(start, lambda: False)
        assert next(events) == 1
        with pytest.raises(KeyError, match="broken"):
            next(events)


def test_cancelled_while_the_work_is_silent() -> None:
    future: Future[None] = Future()
    cancelled = threading.Event()

    def start(emit: Callable[[str], None]) -> Future[None]:
        emit("one")
        return future

    events = pump(start, cancelled.is_set)
    assert next(events) == "one"
    cancelled.set()
    assert list(events) == []
    assert future.cancelled()


def test_work_that_nobody_reads_any_more_is_cancelled() -> None:
    future: Future[None] = Future()

    def start(emit: Callable[[str], None]) -> Future[None]:
        emit("one")
        return future

    events = pump(start, lambda: False)
    next(events)
    events.close()
    assert future.cancelled()
