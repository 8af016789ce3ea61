import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import msgspec
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from omniduplex.engine.duplex.output_buffer import (
    CLOSE_DETAILS_EXCEED_LIMIT,
    MAX_CANCELLED_RESPONSES,
    MAX_CLOSURE_BYTES,
    RESERVE_BYTES,
    RESERVE_EVENTS,
    DuplexOutputBuffer,
    EndOfEvents,
    wire_size,
)
from omniduplex.protocol.duplex import (
    AudioDelta,
    DeltaMetadata,
    DuplexEvent,
    DuplexResponse,
    ErrorDetails,
    ErrorEvent,
    HeartbeatAck,
    PlaybackCursor,
    Reason,
    ResponseDone,
    SessionClosed,
    SessionExpired,
    TranscriptDelta,
)

ROOMY = 1 << 20
CLOSED = SessionClosed(session_id="s", epoch=0, reason="client_close")


def audio(response_id: str = "r", *, delta: bytes = b"\0\1") -> AudioDelta:
    return AudioDelta(response_id=response_id, item_id="i", delta=delta)


def words(response_id: str = "r", text: str = "hi") -> TranscriptDelta:
    return TranscriptDelta(response_id=response_id, item_id="i", delta=text)


def heartbeat(session_id: str = "s") -> HeartbeatAck:
    return HeartbeatAck(session_id=session_id)


def failure(message: str = "overflow") -> ErrorEvent:
    return ErrorEvent(
        error=ErrorDetails(type="rate_limit_error", code="output_backpressure", message=message)
    )


def ending(response_id: str = "r") -> ResponseDone:
    response = DuplexResponse(id=response_id, status="failed")
    return ResponseDone(response_id=response_id, response=response)


def roomy() -> DuplexOutputBuffer:
    return DuplexOutputBuffer(max_bytes=ROOMY, max_events=512)


def json_size(event: DuplexEvent) -> int:
    return len(msgspec.json.encode(event))


def step(coroutine: Coroutine[Any, Any, DuplexEvent]) -> DuplexEvent:
    """Return the result of a coroutine that has no reason to wait."""
    try:
        coroutine.send(None)
    except StopIteration as result:
        value: DuplexEvent = result.value
        return value
    coroutine.close()
    raise AssertionError("it waits")


def take(buffer: DuplexOutputBuffer) -> DuplexEvent:
    return step(buffer.get())


def take_all(buffer: DuplexOutputBuffer) -> list[DuplexEvent]:
    return [take(buffer) for _ in range(buffer.pending_events)]


# Sizes


@given(
    delta=st.binary(max_size=300),
    text=st.text(st.characters(codec="utf-8"), max_size=20),
    number=st.integers(0, 2**53),
)
def test_audio_is_counted_as_its_json_without_being_encoded(
    delta: bytes, text: str, number: int
) -> None:
    """The tolerance would be 2 %; the count is exact."""
    event = AudioDelta(
        response_id=text,
        item_id=text,
        delta=delta,
        format="pcm16",
        sample_rate_hz=24_000,
        metadata=DeltaMetadata(
            session_id=text,
            epoch=number,
            audio_duration_ms=number,
            playback=PlaybackCursor(generated_ms=number),
        ),
    )

    assert wire_size(event) == json_size(event)


@pytest.mark.parametrize("event", [words(text='"ö"\n'), failure(), ending(), heartbeat()])
def test_other_events_are_counted_as_their_json(event: DuplexEvent) -> None:
    assert wire_size(event) == json_size(event)


# Limits


def test_events_leave_in_the_order_they_came() -> None:
    buffer = roomy()
    events: list[DuplexEvent] = [heartbeat(), audio(), words(), ending(), failure()]

    assert all(buffer.put(event) for event in events)
    assert buffer.pending_events == 5
    assert buffer.pending_bytes == sum(map(json_size, events))

    assert take_all(buffer) == events
    assert (buffer.pending_bytes, buffer.pending_events) == (0, 0)


def test_the_byte_limit_is_the_last_byte_that_fits() -> None:
    size = json_size(audio())
    buffer = DuplexOutputBuffer(max_bytes=2 * size, max_events=512)

    assert buffer.put(audio())
    assert buffer.put(audio())
    assert not buffer.overflowed
    assert not buffer.put(heartbeat(""))
    assert buffer.overflowed
    assert buffer.pending_bytes == 2 * size


def test_the_event_limit_counts_events_of_any_size() -> None:
    buffer = DuplexOutputBuffer(max_bytes=ROOMY, max_events=2)

    assert [buffer.put(heartbeat()) for _ in range(3)] == [True, True, False]
    assert buffer.overflowed


def test_the_event_held_by_the_consumer_is_outside_the_limits() -> None:
    buffer = DuplexOutputBuffer(max_bytes=ROOMY, max_events=1)
    assert buffer.put(heartbeat("first"))
    assert take(buffer) == heartbeat("first")

    assert buffer.put(heartbeat("second"))


def test_ordinary_events_stay_suppressed_after_an_overflow() -> None:
    buffer = DuplexOutputBuffer(max_bytes=ROOMY, max_events=1)
    buffer.put(heartbeat("kept"))
    assert not buffer.put(heartbeat("lost"))
    assert take_all(buffer) == [heartbeat("kept")]

    assert not buffer.put(heartbeat("suppressed"))
    assert buffer.put(failure())
    assert buffer.put(ending())

    assert take_all(buffer) == [failure(), ending()]


def test_an_overflow_is_reported_in_order_with_the_closure_last() -> None:
    buffer = DuplexOutputBuffer(max_bytes=ROOMY, max_events=3)
    for event in (words(text="a"), audio(), words(text="b")):
        buffer.put(event)
    assert not buffer.put(words(text="c"))

    buffer.cancel("r")
    buffer.put(failure())
    buffer.put(ending())
    buffer.close(CLOSED)

    assert take_all(buffer) == [words(text="a"), words(text="b"), failure(), ending()]
    assert take(buffer) == CLOSED


def test_errors_and_endings_share_a_reserve_of_events() -> None:
    buffer = DuplexOutputBuffer(max_bytes=ROOMY, max_events=1)
    buffer.put(heartbeat())

    accepted = [buffer.put(failure() if n % 2 else ending()) for n in range(RESERVE_EVENTS + 1)]

    assert accepted == [True] * RESERVE_EVENTS + [False]
    assert buffer.overflowed
    assert buffer.pending_events == 1 + RESERVE_EVENTS


def test_errors_and_endings_share_a_reserve_of_bytes() -> None:
    limit = json_size(heartbeat())
    buffer = DuplexOutputBuffer(max_bytes=limit, max_events=512)
    buffer.put(heartbeat())
    exact = failure("x" * (RESERVE_BYTES - json_size(failure(""))))

    assert not buffer.put(failure(exact.error.message + "x"))
    assert buffer.put(exact)
    assert not buffer.put(ending())
    assert buffer.pending_bytes == limit + RESERVE_BYTES


# Cancelling


def test_cancel_removes_the_audio_of_that_response_alone() -> None:
    buffer = roomy()
    for event in (audio("a"), words("a"), audio("b"), audio("a"), ending("a"), words("b")):
        buffer.put(event)

    buffer.cancel("a")

    left: list[DuplexEvent] = [words("a"), audio("b"), ending("a"), words("b")]
    assert buffer.pending_bytes == sum(map(json_size, left))
    assert take_all(buffer) == left


def test_cancel_reaches_audio_that_the_consumer_holds() -> None:
    buffer = roomy()
    buffer.put(audio("a"))
    held = take(buffer)
    assert buffer.deliverable(held)

    buffer.cancel("a")

    assert not buffer.deliverable(held)
    assert buffer.deliverable(words("a"))
    assert buffer.deliverable(audio("b"))


def test_audio_put_after_its_cancel_is_ignored_and_no_overflow() -> None:
    buffer = DuplexOutputBuffer(max_bytes=ROOMY, max_events=1)
    buffer.put(heartbeat())
    buffer.cancel("a")

    assert buffer.put(audio("a"))
    assert not buffer.overflowed
    assert take_all(buffer) == [heartbeat()]


def test_cancel_still_works_between_the_closure_and_its_delivery() -> None:
    buffer = roomy()
    buffer.put(audio("a"))
    buffer.close(CLOSED)

    buffer.cancel("a")

    assert take(buffer) == CLOSED


def test_however_many_cancels_follow_the_held_audio_stays_undeliverable() -> None:
    buffer = roomy()
    buffer.put(audio("held"))
    held = take(buffer)
    buffer.cancel("held")

    for number in range(3 * MAX_CANCELLED_RESPONSES):
        buffer.cancel(f"later_{number}")

    assert not buffer.deliverable(held)
    recent = range(2 * MAX_CANCELLED_RESPONSES + 1, 3 * MAX_CANCELLED_RESPONSES)
    assert not any(buffer.deliverable(audio(f"later_{number}")) for number in recent)
    assert buffer.deliverable(audio("later_0"))


# The end


def test_the_closure_comes_once_and_last() -> None:
    buffer = roomy()
    buffer.put(heartbeat())
    buffer.close(CLOSED)
    buffer.close(SessionExpired(session_id="s", reason="late"))

    assert buffer.put(heartbeat("late"))
    assert buffer.pending_events == 1
    assert [take(buffer), take(buffer)] == [heartbeat(), CLOSED]
    for _ in range(2):
        with pytest.raises(EndOfEvents):
            take(buffer)
    buffer.close(CLOSED)
    with pytest.raises(EndOfEvents):
        take(buffer)


def test_a_closure_that_is_put_takes_its_own_slot() -> None:
    buffer = DuplexOutputBuffer(max_bytes=1, max_events=0)

    assert buffer.put(CLOSED)
    assert not buffer.overflowed
    assert take(buffer) == CLOSED


def test_an_exhausted_reserve_does_not_hinder_the_closure() -> None:
    buffer = DuplexOutputBuffer(max_bytes=1, max_events=0)
    while buffer.put(failure()):
        pass

    buffer.close(CLOSED)

    assert take_all(buffer) == [failure()] * RESERVE_EVENTS
    assert take(buffer) == CLOSED


@pytest.mark.parametrize("excess", [0, 1])
def test_a_closure_beyond_its_slot_keeps_type_and_identity_only(excess: int) -> None:
    """The limit counts the event as it is sent, stamped with id and sequence number."""
    stamp = {"event_id": "event_" + "f" * 32, "server_event_seq": 2**53}
    bare = SessionClosed(session_id="s_1", epoch=7, reason="x", event=Reason(type="t", reason=" "))
    room = MAX_CLOSURE_BYTES - json_size(msgspec.structs.replace(bare, **stamp))
    details = Reason(type="t", reason=" " + "d" * (room + excess))
    closure = msgspec.structs.replace(bare, event=details)
    buffer = roomy()

    buffer.close(closure)

    compact = SessionClosed(session_id="s_1", epoch=7, reason=CLOSE_DETAILS_EXCEED_LIMIT)
    assert take(buffer) == (compact if excess else closure)


def test_an_expiry_beyond_its_slot_keeps_type_and_identity_only() -> None:
    buffer = roomy()

    buffer.close(SessionExpired(event_id="e_1", session_id="s_1", reason="d" * MAX_CLOSURE_BYTES))

    assert take(buffer) == SessionExpired(
        event_id="e_1", session_id="s_1", reason=CLOSE_DETAILS_EXCEED_LIMIT
    )


def test_an_abandoned_buffer_holds_nothing_and_never_overflows() -> None:
    buffer = DuplexOutputBuffer(max_bytes=ROOMY, max_events=1)
    buffer.put(heartbeat())

    buffer.abandon()

    assert all(buffer.put(audio()) for _ in range(3))
    buffer.close(CLOSED)
    assert not buffer.overflowed
    assert (buffer.pending_bytes, buffer.pending_events) == (0, 0)
    with pytest.raises(EndOfEvents):
        take(buffer)


# Waiting


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


# Everything at once


class OutputBufferMachine(RuleBasedStateMachine):
    """Any program of producer and consumer against a list of what must come out."""

    max_bytes = 2000
    max_events = 6
    responses = st.sampled_from(["a", "b"])

    @initialize()
    def open(self) -> None:
        self.buffer = DuplexOutputBuffer(max_bytes=self.max_bytes, max_events=self.max_events)
        self.expected: list[DuplexEvent] = []
        self.cancelled: set[str] = set()
        self.overflowed = False
        self.closure: DuplexEvent | None = None
        self.ended = False
        self.sealed = False
        self.held: DuplexEvent | None = None
        self.number = 0

    def put(self, event: DuplexEvent, *, reserve: bool = False) -> None:
        self.number += 1
        event = msgspec.structs.replace(event, server_event_seq=self.number)
        accepted = self.buffer.put(event)
        if self.sealed:
            assert accepted
        elif self.overflowed and not reserve:
            assert not accepted
        elif isinstance(event, AudioDelta) and event.response_id in self.cancelled:
            assert accepted
        else:
            assert accepted == self.has_room(event, reserve)
            self.overflowed |= not accepted
            if accepted:
                self.expected.append(event)

    def has_room(self, event: DuplexEvent, reserve: bool) -> bool:
        queued = sum(map(json_size, self.expected))
        return (
            queued + json_size(event) <= self.max_bytes + reserve * RESERVE_BYTES
            and len(self.expected) + 1 <= self.max_events + reserve * RESERVE_EVENTS
        )

    @rule(response_id=responses, size=st.integers(0, 600))
    def put_audio(self, response_id: str, size: int) -> None:
        self.put(audio(response_id, delta=bytes(size)))

    @rule(response_id=responses, text=st.text(st.characters(codec="utf-8"), max_size=30))
    def put_words(self, response_id: str, text: str) -> None:
        self.put(words(response_id, text))

    @rule(size=st.sampled_from([0, 100, RESERVE_BYTES // 2]))
    def put_error(self, size: int) -> None:
        self.put(failure("x" * size), reserve=True)

    @rule(response_id=responses)
    def put_ending(self, response_id: str) -> None:
        self.put(ending(response_id), reserve=True)

    @rule(response_id=responses)
    def cancel(self, response_id: str) -> None:
        self.buffer.cancel(response_id)
        self.cancelled.add(response_id)
        self.expected = [
            event
            for event in self.expected
            if not (isinstance(event, AudioDelta) and event.response_id == response_id)
        ]

    @rule(closure=st.sampled_from([CLOSED, SessionExpired(session_id="s", reason="idle")]))
    def close(self, closure: SessionClosed | SessionExpired) -> None:
        self.buffer.close(closure)
        if not self.sealed:
            self.sealed = True
            self.closure = closure

    @precondition(lambda self: self.expected)
    @rule()
    def take_next(self) -> None:
        self.held = take(self.buffer)
        assert self.held == self.expected.pop(0)

    @precondition(lambda self: self.sealed and not self.expected)
    @rule()
    def take_the_end(self) -> None:
        if self.closure is None:
            with pytest.raises(EndOfEvents):
                take(self.buffer)
        else:
            self.held = take(self.buffer)
            assert self.held == self.closure
            self.closure = None

    @rule()
    def abandon(self) -> None:
        self.buffer.abandon()
        self.sealed = True
        self.closure = None
        self.expected.clear()

    @invariant()
    def the_budget_is_what_is_queued(self) -> None:
        assert self.buffer.pending_events == len(self.expected)
        assert self.buffer.pending_bytes == sum(map(json_size, self.expected))
        assert self.buffer.pending_events <= self.max_events + RESERVE_EVENTS
        assert self.buffer.pending_bytes <= self.max_bytes + RESERVE_BYTES
        assert self.buffer.overflowed == self.overflowed

    @invariant()
    def only_cancelled_audio_is_withheld(self) -> None:
        if self.held is not None:
            withheld = isinstance(self.held, AudioDelta) and self.held.response_id in self.cancelled
            assert self.buffer.deliverable(self.held) == (not withheld)


TestOutputBufferMachine = OutputBufferMachine.TestCase


@pytest.fixture
def frequent_thread_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_thread_switches")
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_two_threads_agree_on_order_cancels_and_the_end(
    run: Callable[[Coroutine[Any, Any, list[DuplexEvent]]], list[DuplexEvent]],
) -> None:
    responses, deltas = 200, 20
    buffer = DuplexOutputBuffer(max_bytes=1 << 30, max_events=1 << 20)
    cancel_returned: set[str] = set()
    written_too_late: list[DuplexEvent] = []

    def produce() -> None:
        for response in map(str, range(responses)):
            for delta in range(deltas):
                buffer.put(audio(response, delta=bytes(delta)))
                buffer.put(words(response, str(delta)))
                if delta == deltas // 2:
                    buffer.cancel(response)
                    cancel_returned.add(response)
            buffer.put(ending(response))
        buffer.close(CLOSED)

    async def consume() -> list[DuplexEvent]:
        events: list[DuplexEvent] = []
        producer = threading.Thread(target=produce)
        producer.start()
        while True:
            try:
                event = await buffer.get()
            except EndOfEvents:
                producer.join()
                return events
            too_late = isinstance(event, AudioDelta) and event.response_id in cancel_returned
            if buffer.deliverable(event):
                events.append(event)
                if too_late:
                    written_too_late.append(event)

    events = run(consume())

    assert written_too_late == []
    assert [event for event in events if not isinstance(event, AudioDelta)] == [
        event
        for response in map(str, range(responses))
        for event in (*(words(response, str(n)) for n in range(deltas)), ending(response))
    ] + [CLOSED]
    places = [
        (int(event.response_id), len(event.delta))
        for event in events
        if isinstance(event, AudioDelta)
    ]
    assert places == sorted(set(places))
    assert all(number <= deltas // 2 for _, number in places)
    assert (buffer.pending_bytes, buffer.pending_events) == (0, 0)
