"""Appends that are converted off the loop, and what the client sends behind them."""

from typing import Any

import pytest
from tests.engine.duplex.session.driver import SessionDriver, loud

from omniduplex.engine.duplex.session.core import INLINE_BYTES
from omniduplex.engine.duplex.session.inputs import AudioReady
from omniduplex.protocol.duplex import (
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    CloseSession,
    Commit,
    CreateResponse,
    DuplexCommand,
    ErrorEvent,
    Heartbeat,
    InputCommitted,
    ItemAdded,
    SessionPatch,
    SessionUpdated,
    UpdateSession,
)

LARGE = loud(3000)
SMALL = loud(100)
assert len(SMALL) < INLINE_BYTES < len(LARGE)


def large(driver: SessionDriver, **hints: Any) -> None:
    driver.append(pcm=LARGE, **hints)


def test_a_large_append_is_heard_when_it_is_converted(by_hand: SessionDriver) -> None:
    large(by_hand)
    assert by_hand.model.heard == b""
    by_hand.converted()
    assert by_hand.model.heard == LARGE


def test_an_append_of_the_limit_is_converted_at_once(by_hand: SessionDriver) -> None:
    by_hand.append(pcm=LARGE[:INLINE_BYTES])
    assert by_hand.preparing == []


def test_audio_keeps_its_order(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.append(pcm=SMALL)
    large(by_hand)
    by_hand.append(pcm=SMALL)
    assert len(by_hand.preparing) == 1

    by_hand.converted()
    assert by_hand.model.heard == LARGE + SMALL
    by_hand.converted()
    assert by_hand.model.heard == LARGE + SMALL + LARGE + SMALL


def test_commit_items_and_answers_wait_behind_it(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.commit()
    by_hand.says("typed")
    by_hand.send(CreateResponse())
    assert by_hand.events() == []

    by_hand.converted()
    assert [event.item.id for event in by_hand.of(ItemAdded)] == ["item_1", "item_2", "item_resp_1"]
    by_hand.transcript("item_1", "spoken")
    assert by_hand.said == [("user", "spoken"), ("user", "typed")]


def test_a_new_input_format_holds_for_what_comes_behind_it(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.append(pcm=SMALL)
    by_hand.send(UpdateSession(session=SessionPatch(input_audio_format="g711_ulaw")))
    by_hand.append(pcm=bytes(80))
    by_hand.converted()

    assert by_hand.model.heard[: len(LARGE + SMALL)] == LARGE + SMALL
    assert len(by_hand.of(SessionUpdated)) == 2


def test_a_refusal_of_what_waited_names_its_event(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.commit()
    by_hand.send(Commit(event_id="e2"))
    by_hand.append(pcm=SMALL, format="mp3", event_id="e3")
    by_hand.converted()
    assert by_hand.kinds()[-2:] == ["ErrorEvent", "ErrorEvent"]
    assert by_hand.error().event_id == "e3"


def test_bad_audio_is_refused_by_name_and_gives_its_room_back(by_hand: SessionDriver) -> None:
    for _ in range(20):
        by_hand.append(
            pcm=b"\x00\x00\xc0\x7f" * (INLINE_BYTES // 4 + 1), format="pcm_f32le", event_id="e1"
        )
        by_hand.converted(error="a sample is not finite")
    error = by_hand.error()
    assert (error.code, error.event_id, error.param) == ("bad_audio", "e1", "audio")

    large(by_hand)
    by_hand.converted()
    by_hand.commit()
    assert len(by_hand.of(InputCommitted)) == 1


def test_small_bad_audio_gives_its_room_back_too(by_hand: SessionDriver) -> None:
    for _ in range(100):
        by_hand.append(pcm=b"\x00\x00\xc0\x7f" * 4000, format="pcm_f32le")
        assert by_hand.error().code == "bad_audio"


def test_the_room_is_taken_when_the_append_comes(by_hand: SessionDriver) -> None:
    for _ in range(20):
        large(by_hand, event_id="e1")
        if by_hand.preparing:
            by_hand.converted()
    assert (by_hand.error().code, by_hand.error().event_id) == ("input_backpressure", "e1")


# What overtakes


@pytest.mark.parametrize("command", [ClearInput(), CancelInput(), BargeIn()])
def test_dropping_input_does_not_wait(by_hand: SessionDriver, command: DuplexCommand) -> None:
    large(by_hand)
    by_hand.append(pcm=SMALL)
    by_hand.send(command)
    assert by_hand.kinds() == ["InputCleared"]
    by_hand.converted()
    assert by_hand.model.heard == b""

    by_hand.append(pcm=SMALL)
    by_hand.commit()
    assert by_hand.model.heard == SMALL
    assert by_hand.kinds()[-1] == "ItemDone"


def test_a_late_conversion_is_not_taken_for_the_next(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.send(ClearInput())
    large(by_hand)
    late, current = by_hand.preparing
    by_hand.feed(AudioReady(late.ticket, b"\1\1"))
    assert by_hand.model.heard == b""

    by_hand.feed(AudioReady(current.ticket, b"\2\2"))
    assert by_hand.model.heard == b"\2\2"


def test_audio_behind_a_dropped_append_has_a_decoder_of_its_own(by_hand: SessionDriver) -> None:
    """The other thread may still be at work with the old one, whose odd byte must not leak."""
    by_hand.append(pcm=LARGE + b"\7")
    by_hand.send(ClearInput())
    by_hand.append(pcm=SMALL)
    by_hand.converted()
    by_hand.append(pcm=SMALL)

    assert by_hand.model.heard == SMALL + SMALL


def test_a_clear_drops_nothing_that_was_committed_before_it(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.commit(response_create=True)
    by_hand.append(pcm=SMALL)
    by_hand.send(ClearInput())
    by_hand.converted()

    assert by_hand.model.heard == LARGE
    assert by_hand.model.commits == ["item_1"]
    assert by_hand.open_responses == ["resp_1"]
    by_hand.commit()
    assert by_hand.error().code == "input_audio_buffer_empty"


@pytest.mark.parametrize("command", [CancelInput(), BargeIn()])
def test_an_interruption_keeps_the_turn_but_wants_no_answer(
    by_hand: SessionDriver, command: DuplexCommand
) -> None:
    large(by_hand)
    by_hand.commit(response_create=True)
    by_hand.send(CreateResponse())
    by_hand.send(command)
    by_hand.converted()

    assert by_hand.model.commits == ["item_1"]
    assert by_hand.open_responses == []


def test_other_commands_survive_a_clear(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.says("typed")
    by_hand.append(pcm=SMALL)
    by_hand.send(CreateResponse())
    by_hand.send(ClearInput())

    assert by_hand.said == [("user", "typed")]
    assert by_hand.model.heard == b""


def test_a_cancel_stops_the_answer_at_once_and_those_that_wait(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    large(by_hand)
    by_hand.commit(response_create=True)
    by_hand.events()
    by_hand.send(CancelResponse())
    assert "ResponseDone" in by_hand.kinds()

    by_hand.converted()
    assert by_hand.model.commits == ["item_2"]
    assert by_hand.open_responses == []


def test_a_cancel_of_an_answer_that_waits_waits_for_it(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.commit(response_create=True)
    by_hand.send(CancelResponse())
    by_hand.converted()
    assert by_hand.kinds()[-2:] == ["ResponseDone", "RateLimitsUpdated"]
    assert by_hand.open_responses == []


@pytest.mark.parametrize("command", [CancelResponse(), CancelInput(), BargeIn()])
def test_who_asked_for_an_answer_that_is_cancelled_while_it_waits_is_told(
    by_hand: SessionDriver, command: DuplexCommand
) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    large(by_hand)
    by_hand.commit()
    by_hand.send(CreateResponse(event_id="e1"))
    by_hand.send(CreateResponse(event_id="e2"))
    by_hand.events()
    by_hand.send(command)

    errors = [event.error for event in by_hand.of(ErrorEvent)]
    assert [error.event_id for error in errors] == ["e1", "e2"]
    assert {error.code for error in errors} == {"response_already_active"}
    by_hand.converted()
    assert by_hand.open_responses == []


@pytest.mark.parametrize("command", [CancelInput(), BargeIn()])
def test_an_answer_that_never_began_is_refused_when_the_user_interrupts(
    by_hand: SessionDriver, command: DuplexCommand
) -> None:
    large(by_hand)
    by_hand.commit()
    by_hand.send(CreateResponse(event_id="e1"))
    by_hand.send(command)

    assert (by_hand.error().code, by_hand.error().event_id) == ("response_not_active", "e1")
    by_hand.converted()
    assert by_hand.open_responses == []


def test_an_answer_that_is_asked_for_behind_a_cancel_that_waits_is_given(
    by_hand: SessionDriver,
) -> None:
    large(by_hand)
    by_hand.commit(response_create=True)
    by_hand.send(CancelResponse())
    by_hand.send(CreateResponse())
    by_hand.converted()
    assert by_hand.open_responses == ["resp_2"]

    by_hand.transcript("item_1", "spoken")
    assert by_hand.said == [("user", "spoken")]


def test_signs_of_life_and_the_end_do_not_wait(by_hand: SessionDriver) -> None:
    large(by_hand)
    by_hand.send(Heartbeat())
    by_hand.send(CloseSession())
    by_hand.converted()
    assert by_hand.kinds() == ["HeartbeatAck", "SessionClosed"]


def test_speech_that_interrupts_drops_no_audio_that_waits(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello")
    large(driver)
    driver.append(pcm=SMALL)
    driver.user_speaks()
    driver.converted()

    assert driver.model.heard == LARGE + SMALL


def test_an_append_that_interrupts_does_so_before_it_is_converted(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello")
    large(driver, force_barge_in=True)
    assert driver.open_responses == []
