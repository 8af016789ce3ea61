import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.duplex.output_events import (
    CLOSED,
    ROOMY,
    audio,
    ending,
    failure,
    heartbeat,
    json_size,
    roomy,
    take,
    take_all,
    words,
)

from omniduplex.engine.duplex.output_buffer import (
    CLOSE_DETAILS_EXCEED_LIMIT,
    MAX_CLOSURE_BYTES,
    MAX_SILENCED_RESPONSES,
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
    PlaybackCursor,
    Reason,
    SessionClosed,
    SessionExpired,
)

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


def test_what_is_taken_at_once_is_in_order_and_deliverable() -> None:
    buffer = roomy()
    for event in (audio("a"), words("a"), audio("b")):
        buffer.put(event)
    buffer.cancel("a")

    assert [buffer.take(), buffer.take(), buffer.take()] == [words("a"), audio("b"), None]
    assert buffer.pending_bytes == 0


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

    for number in range(3 * MAX_SILENCED_RESPONSES):
        buffer.cancel(f"later_{number}")

    assert not buffer.deliverable(held)
    recent = range(2 * MAX_SILENCED_RESPONSES + 1, 3 * MAX_SILENCED_RESPONSES)
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
    bare = SessionClosed(
        session_id="s_1",
        epoch=7,
        reason="x",
        event=Reason(type="t", reason=" "),
        slot_released=False,
    )
    room = MAX_CLOSURE_BYTES - json_size(msgspec.structs.replace(bare, **stamp))
    details = Reason(type="t", reason=" " + "d" * (room + excess))
    closure = msgspec.structs.replace(bare, event=details)
    buffer = roomy()

    buffer.close(closure)

    compact = msgspec.structs.replace(bare, reason=CLOSE_DETAILS_EXCEED_LIMIT, event=Reason())
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
