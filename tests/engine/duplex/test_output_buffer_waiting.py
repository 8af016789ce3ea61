import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from tests.engine.duplex.output_events import (
    CLOSED,
    heartbeat,
    roomy,
)

from omniduplex.engine.duplex.output_buffer import (
    DuplexOutputBuffer,
    EndOfEvents,
)
from omniduplex.protocol.duplex import (
    DuplexEvent,
)


async def _waiting(buffer: DuplexOutputBuffer) -> asyncio.Task[DuplexEvent]:
    task = asyncio.create_task(buffer.get(), name="consumer")
    await asyncio.sleep(0)
    return task


def test_a_waiting_consumer_is_woken_once() -> None:
    async def check() -> None:
        buffer = roomy()
        loop = asyncio.get_running_loop()
        wakes = 0
        call_soon_threadsafe = loop.call_soon_threadsafe

        def counting(*args: Any, **kwargs: Any) -> asyncio.Handle:
            nonlocal wakes
            wakes += 1
            return call_soon_threadsafe(*args, **kwargs)

        loop.call_soon_threadsafe = counting  # type: ignore[assignment, method-assign]
        buffer.put(heartbeat("0"))
        assert wakes == 0
        assert await buffer.get() == heartbeat("0")

        consumer = await _waiting(buffer)
        buffer.put(heartbeat("1"))
        buffer.put(heartbeat("2"))
        assert wakes == 1
        assert await consumer == heartbeat("1")
        assert await buffer.get() == heartbeat("2")

    asyncio.run(check())


def test_a_consumer_is_woken_when_a_burst_is_over() -> None:
    async def check() -> None:
        buffer = roomy()
        consumer = await _waiting(buffer)
        buffer.begin_burst()
        buffer.put(heartbeat("0"))
        buffer.put(heartbeat("1"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not consumer.done()
        buffer.end_burst()
        assert await consumer == heartbeat("0")
        assert await buffer.get() == heartbeat("1")

    asyncio.run(check())


def test_an_eager_listener_takes_first_and_get_has_the_rest() -> None:
    async def check() -> None:
        buffer = roomy()
        taken: list[DuplexEvent | None] = []
        buffer.listen(lambda: taken.append(buffer.take()))
        buffer.put(heartbeat("0"))
        assert await buffer.get() == heartbeat("0")
        assert taken == []

        consumer = await _waiting(buffer)
        buffer.put(heartbeat("1"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert taken == [heartbeat("1")]
        assert not consumer.done()

        buffer.begin_burst()
        for name in ("2", "3", "4"):
            buffer.put(heartbeat(name))
        buffer.end_burst()
        assert await consumer == heartbeat("3")
        assert await buffer.get() == heartbeat("4")
        assert taken == [heartbeat("1"), heartbeat("2")]

    asyncio.run(check())


def test_get_ends_when_an_eager_listener_took_the_end() -> None:
    async def check() -> None:
        buffer = roomy()
        taken: list[DuplexEvent | None] = []
        buffer.listen(lambda: taken.append(buffer.take()))
        consumer = await _waiting(buffer)
        buffer.close(CLOSED)
        with pytest.raises(EndOfEvents):
            await consumer
        assert taken == [CLOSED]

    asyncio.run(check())


def test_an_end_inside_a_burst_is_told_at_once() -> None:
    async def check() -> None:
        buffer = roomy()
        consumer = await _waiting(buffer)
        buffer.begin_burst()
        buffer.put(CLOSED)
        assert await consumer == CLOSED
        buffer.end_burst()

    asyncio.run(check())


@pytest.mark.parametrize("turns_of_the_loop", [0, 1])
def test_a_get_cancelled_while_it_is_woken_loses_no_event(turns_of_the_loop: int) -> None:
    async def check() -> None:
        failures: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failures.append(context)
        )
        buffer = roomy()
        consumer = await _waiting(buffer)
        buffer.put(heartbeat())
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)

        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer

        assert await buffer.get() == heartbeat()
        assert failures == []

    asyncio.run(check())


def test_after_a_cancelled_get_the_next_one_may_wait() -> None:
    async def check() -> None:
        buffer = roomy()
        first = await _waiting(buffer)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

        second = await _waiting(buffer)
        buffer.put(heartbeat())
        assert await second == heartbeat()

    asyncio.run(check())


def test_closing_and_abandoning_wake_the_consumer() -> None:
    async def check() -> None:
        closed, abandoned = roomy(), roomy()
        reads_closed, reads_abandoned = await _waiting(closed), await _waiting(abandoned)

        closed.close(CLOSED)
        abandoned.abandon()

        assert await reads_closed == CLOSED
        with pytest.raises(EndOfEvents):
            await reads_abandoned

    asyncio.run(check())


def test_a_second_consumer_is_refused() -> None:
    async def check() -> None:
        buffer = roomy()
        consumer = await _waiting(buffer)
        with pytest.raises(RuntimeError, match="one consumer"):
            await buffer.get()

        buffer.put(heartbeat())
        assert await consumer == heartbeat()

    asyncio.run(check())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_consumer_whose_loop_was_closed_has_left(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    buffer = roomy()
    loop = new_loop()
    consumer = buffer.get()

    async def wait() -> None:
        consumer.send(None)

    loop.run_until_complete(wait())
    loop.close()

    assert buffer.put(heartbeat())
    assert buffer.pending_events == 0
    consumer.close()
