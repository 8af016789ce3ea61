"""A buffer that gives up unread answers: nothing else is lost, and the answers say so."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UnsetType
from tests.engine.duplex.output_events import (
    CLOSED,
    ROOMY,
    audio,
    failure,
    heartbeat,
    json_size,
    take,
    take_all,
    words,
)

from omniduplex.engine.duplex.output_buffer import (
    RESERVE_BYTES,
    RESERVE_EVENTS,
    DuplexOutputBuffer,
)
from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexEvent,
    DuplexResponse,
    ResponseDone,
    ResponseStatus,
    TextDelta,
    TranscriptDelta,
)


def giving_up(max_events: int) -> DuplexOutputBuffer:
    return DuplexOutputBuffer(max_bytes=ROOMY, max_events=max_events, gives_up_answers=True)


def done(response_id: str, status: ResponseStatus = "completed") -> ResponseDone:
    response = DuplexResponse(id=response_id, status=status)
    return ResponseDone(response_id=response_id, response=response)


def told(events: list[DuplexEvent]) -> list[str]:
    """Each event in a word: `a` audio, `w` words, `completed` and so on endings, `.` the rest."""
    told = []
    for event in events:
        match event:
            case AudioDelta():
                told.append(f"a{event.response_id}")
            case TranscriptDelta() | TextDelta():
                told.append(f"w{event.response_id}")
            case ResponseDone():
                told.append(f"{event.response.status} {event.response_id}")
            case _:
                told.append(".")
    return told


def test_an_increment_without_room_is_the_end_of_its_own_answer() -> None:
    buffer = giving_up(3)
    for event in (audio("1"), heartbeat(), audio("2")):
        assert buffer.put(event)

    assert buffer.put(words("2"))
    assert buffer.take_given_up() == ["2"]
    assert buffer.take_given_up() == []
    assert told(take_all(buffer)) == ["a1", "."]
    assert not buffer.overflowed


def test_what_is_no_increment_takes_the_room_of_the_newest_unread_answer() -> None:
    buffer = giving_up(6)
    for event in (audio("1"), words("1"), done("1"), audio("2"), words("2"), done("2")):
        buffer.put(event)

    assert buffer.put(heartbeat())
    assert buffer.take_given_up() == ["2"]
    assert told(take_all(buffer)) == ["a1", "w1", "completed 1", "failed 2", "."]


def test_if_one_answer_is_not_room_enough_the_next_goes_too() -> None:
    events = [one for name in "123" for one in (audio(name, delta=bytes(3000)), done(name))]
    limit = sum(map(json_size, events))
    buffer = DuplexOutputBuffer(max_bytes=limit, max_events=512, gives_up_answers=True)
    for event in events:
        buffer.put(event)

    assert buffer.put(heartbeat("x" * 6000))
    assert buffer.take_given_up() == ["3", "2"]
    assert told(take_all(buffer)) == ["a1", "completed 1", "failed 2", "failed 3", "."]


def test_what_was_read_of_an_answer_is_not_taken_back() -> None:
    buffer = giving_up(2)
    buffer.put(audio("1"))
    held = take(buffer)
    for event in (audio("1"), words("1")):
        buffer.put(event)
    assert buffer.deliverable(held)

    assert buffer.put(heartbeat())
    assert not buffer.deliverable(held)
    assert told(take_all(buffer)) == ["."]


def test_nothing_of_an_answer_that_was_given_up_comes_later_but_its_ending() -> None:
    buffer = giving_up(1)
    buffer.put(audio("1"))
    buffer.put(heartbeat())

    assert buffer.put(audio("1"))
    assert buffer.put(words("1"))
    assert buffer.put(TextDelta(response_id="1", item_id="i", delta="hi"))
    assert buffer.put(done("1"))
    assert told(take_all(buffer)) == [".", "failed 1"]
    assert buffer.take_given_up() == ["1"]


@pytest.mark.parametrize("status", ["cancelled", "failed"])
def test_an_answer_that_ended_otherwise_keeps_its_ending(status: ResponseStatus) -> None:
    buffer = giving_up(2)
    buffer.put(audio("1"))
    buffer.put(done("1", status))
    buffer.put(heartbeat())

    assert told(take_all(buffer)) == [f"{status} 1", "."]


def test_a_failed_ending_says_why_and_keeps_what_was_made() -> None:
    buffer = giving_up(2)
    ending = done("1")
    buffer.put(audio("1"))
    buffer.put(ending)
    buffer.put(heartbeat())
    failed = take(buffer)

    assert isinstance(failed, ResponseDone)
    details = failed.response.status_details
    assert not isinstance(details, UnsetType)
    assert details
    assert details.reason == "output_backpressure"
    assert failed.response.output == ending.response.output


def test_a_cancel_forgets_no_giving_up() -> None:
    buffer = giving_up(1)
    buffer.put(audio("1"))
    buffer.put(heartbeat())
    buffer.cancel("1")

    assert buffer.put(words("1"))
    assert told(take_all(buffer)) == ["."]


def test_only_what_is_no_answer_can_overflow() -> None:
    buffer = giving_up(2)
    assert [buffer.put(heartbeat()) for _ in range(3)] == [True, True, False]
    assert buffer.overflowed
    assert buffer.take_given_up() == []


def test_an_answer_with_words_alone_makes_room_too() -> None:
    buffer = giving_up(2)
    for _ in range(2):
        buffer.put(TextDelta(response_id="1", item_id="i", delta="hi"))

    assert buffer.put(heartbeat())
    assert buffer.take_given_up() == ["1"]


def test_an_ending_beyond_the_reserve_makes_room_as_well() -> None:
    buffer = giving_up(1)
    buffer.put(audio("1"))
    for _ in range(RESERVE_EVENTS):
        assert buffer.put(failure())

    assert buffer.put(done("1"))
    assert buffer.take_given_up() == ["1"]
    assert told(take_all(buffer))[-1] == "failed 1"


RESPONSES = st.sampled_from(["1", "2", "3"])
EVENTS = st.one_of(
    st.builds(lambda name, size: audio(name, delta=bytes(size)), RESPONSES, st.integers(0, 600)),
    st.builds(words, RESPONSES, st.text("ab", max_size=30)),
    st.builds(lambda size: heartbeat("x" * size), st.integers(0, 100)),
    st.builds(done, RESPONSES),
)
# What a completed ending grows by when it becomes a failed one.
FAILURE_BYTES = 300


@given(
    program=st.lists(st.one_of(EVENTS, st.none()), max_size=60),
    max_events=st.integers(1, 8),
)
def test_whatever_comes_is_bounded_in_order_and_complete_but_for_given_up_answers(
    program: list[DuplexEvent | None], max_events: int
) -> None:
    """None in a program is a read."""
    buffer = DuplexOutputBuffer(max_bytes=2000, max_events=max_events, gives_up_answers=True)
    put: list[DuplexEvent] = []
    read: list[DuplexEvent] = []
    given_up: set[str] = set()
    for number, event in enumerate(program):
        if event is None:
            taken = buffer.take()
            read += [] if taken is None else [taken]
            continue
        numbered = msgspec.structs.replace(event, server_event_seq=number)
        fits = buffer.put(numbered)
        given_up |= set(buffer.take_given_up())
        if not fits:
            break
        put.append(numbered)
        assert buffer.pending_events <= max_events + RESERVE_EVENTS
        assert buffer.pending_bytes <= 2000 + RESERVE_BYTES + FAILURE_BYTES * len(given_up)
    buffer.close(CLOSED)
    read += take_all(buffer)

    numbers = [event.server_event_seq for event in read]
    missing = [event for event in put if event.server_event_seq not in numbers]
    assert numbers == [event.server_event_seq for event in put if event not in missing]
    lost = [event for event in missing if isinstance(event, AudioDelta | TranscriptDelta)]
    assert lost == missing
    assert {event.response_id for event in lost} <= given_up
