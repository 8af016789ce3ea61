import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from itertools import pairwise
from typing import TypeVarTuple

import pytest
import uvloop

from omniduplex.engine.channel import (
    MAX_ITEMS_PER_CALLBACK,
    Channel,
    ChannelClosed,
    ChannelFull,
)

Ts = TypeVarTuple("Ts")


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts the wake-ups from other threads."""

    wakes = 0

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self.wakes += 1
        return super().call_soon_threadsafe(callback, *args, context=context)


@pytest.fixture
def loop() -> Iterator[CountingLoop]:
    loop = CountingLoop()
    yield loop
    loop.close()


def run_until_idle(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop run all that is ready now, and nothing that this makes ready."""
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_items_are_consumed_in_order_on_the_loop(loop: CountingLoop) -> None:
    seen: list[int] = []
    channel: Channel[int] = Channel(seen.append)
    channel.bind(loop)

    for item in range(3):
        channel.put(item)

    assert seen == []
    run_until_idle(loop)
    assert seen == [0, 1, 2]


def test_items_put_before_bind_are_kept(loop: CountingLoop) -> None:
    seen: list[str] = []
    channel: Channel[str] = Channel(seen.append)
    channel.put("early")

    channel.bind(loop)
    channel.put("late")
    run_until_idle(loop)

    assert seen == ["early", "late"]


def test_a_burst_wakes_the_loop_once(loop: CountingLoop) -> None:
    channel: Channel[int] = Channel(lambda _: None)
    channel.bind(loop)
    assert loop.wakes == 0

    for item in range(100):
        channel.put(item)
    assert loop.wakes == 1
    run_until_idle(loop)

    channel.put(100)
    assert loop.wakes == 2


def test_what_is_put_while_consuming_needs_no_wake(loop: CountingLoop) -> None:
    seen: list[int] = []

    def consume(item: int) -> None:
        seen.append(item)
        if item < 10:
            channel.put(item + 1)

    channel: Channel[int] = Channel(consume)
    channel.bind(loop)
    channel.put(0)
    run_until_idle(loop)

    assert seen == list(range(11))
    assert loop.wakes == 1


def test_the_loop_gets_its_turn_within_a_long_burst(loop: CountingLoop) -> None:
    seen: list[int] = []
    channel: Channel[int] = Channel(seen.append)
    channel.bind(loop)
    for item in range(2 * MAX_ITEMS_PER_CALLBACK + 1):
        channel.put(item)

    turns: list[int] = []
    for _ in range(3):
        run_until_idle(loop)
        turns.append(len(seen))

    assert turns == [
        MAX_ITEMS_PER_CALLBACK,
        2 * MAX_ITEMS_PER_CALLBACK,
        2 * MAX_ITEMS_PER_CALLBACK + 1,
    ]
    assert loop.wakes == 1


@pytest.mark.parametrize("error", [ValueError("bad item"), asyncio.CancelledError()])
def test_a_failing_item_is_logged_and_the_rest_is_consumed(
    loop: CountingLoop, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    seen: list[int] = []

    def consume(item: int) -> None:
        if item == 1:
            raise error
        seen.append(item)

    channel: Channel[int] = Channel(consume)
    channel.bind(loop)
    for item in range(3):
        channel.put(item)
    with caplog.at_level(logging.ERROR):
        run_until_idle(loop)

    assert seen == [0, 2]
    [record] = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_full_channel_refuses_and_takes_again_once_drained(loop: CountingLoop) -> None:
    seen: list[int] = []
    channel: Channel[int] = Channel(seen.append, max_items=2)
    channel.bind(loop)
    channel.put(0)
    channel.put(1)
    with pytest.raises(ChannelFull):
        channel.put(2)

    run_until_idle(loop)
    channel.put(3)
    run_until_idle(loop)

    assert seen == [0, 1, 3]


def test_a_closed_channel_consumes_nothing_more(loop: CountingLoop) -> None:
    seen: list[int] = []

    def consume(item: int) -> None:
        seen.append(item)
        channel.close()

    channel: Channel[int] = Channel(consume)
    channel.bind(loop)
    channel.put(0)
    channel.put(1)
    run_until_idle(loop)

    assert seen == [0]
    with pytest.raises(ChannelClosed):
        channel.put(2)
    channel.close()


@pytest.mark.parametrize("new_loop", [asyncio.SelectorEventLoop, uvloop.new_event_loop])
def test_a_closed_loop_closes_the_channel(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    loop = new_loop()
    channel: Channel[int] = Channel(lambda _: None)
    channel.bind(loop)
    loop.close()

    for _ in range(2):
        with pytest.raises(ChannelClosed):
            channel.put(0)


def test_a_channel_is_bound_once(loop: CountingLoop) -> None:
    channel: Channel[int] = Channel(lambda _: None)
    channel.bind(loop)

    with pytest.raises(RuntimeError, match="once"):
        channel.bind(loop)


def test_many_threads_lose_nothing_and_keep_their_own_order() -> None:
    threads, items = 4, 5000
    seen: list[tuple[int, int]] = []

    async def receive() -> None:
        loop = asyncio.get_running_loop()
        complete = asyncio.Event()

        def consume(item: tuple[int, int]) -> None:
            seen.append(item)
            if len(seen) == threads * items:
                complete.set()

        channel: Channel[tuple[int, int]] = Channel(consume)

        def produce(thread: int) -> None:
            for item in range(items):
                channel.put((thread, item))

        producers = [threading.Thread(target=produce, args=(thread,)) for thread in range(threads)]
        for producer in producers[:2]:
            producer.start()
        channel.bind(loop)
        for producer in producers[2:]:
            producer.start()
        await complete.wait()
        for producer in producers:
            producer.join()

    asyncio.run(receive())

    assert len(seen) == threads * items
    for thread in range(threads):
        own = [item for source, item in seen if source == thread]
        assert all(later == earlier + 1 for earlier, later in pairwise(own))
