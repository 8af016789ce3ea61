import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import msgspec
import pytest
import uvloop
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from tests.engine.duplex.output_events import (
    CLOSED,
    audio,
    ending,
    failure,
    json_size,
    take,
    words,
)

from omniduplex.engine.duplex.output_buffer import (
    RESERVE_BYTES,
    RESERVE_EVENTS,
    DuplexOutputBuffer,
    EndOfEvents,
)
from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexEvent,
    SessionClosed,
    SessionExpired,
)


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
