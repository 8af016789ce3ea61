"""Stopping an answer: wire contract, section 7.4. The epoch comes first, one ending last."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver, kinds, loud, quiet

from omniduplex.engine.duplex.contracts import Abort
from omniduplex.engine.duplex.session.effects import DropQueuedAudio, Emit, SetTimer
from omniduplex.protocol.duplex import (
    AckPlayback,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    ContentPart,
    CreateItem,
    CreateResponse,
    DuplexCommand,
    ItemInput,
    ItemRetrieved,
    OutputCleared,
    ResponseDone,
    ResponseOptions,
    RetrieveItem,
    SignalTurn,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    TruncateItem,
    TurnDetection,
)

ENDING = [
    "AudioDone",
    "TranscriptDone",
    "ContentPartDone",
    "OutputItemDone",
    "ItemDone",
    "ResponseDone",
    "RateLimitsUpdated",
]
STOPS: dict[str, tuple[DuplexCommand, str]] = {
    "response.cancel": (CancelResponse(), "client_cancelled"),
    "output clear": (ClearOutputAudio(), "output_audio_buffer_clear"),
    "input.cancel": (CancelInput(), "barge_in"),
    "barge_in": (BargeIn(), "barge_in"),
    "turn.signal": (SignalTurn(event="barge_in"), "barge_in"),
}


def speaking(driver: SessionDriver) -> SessionDriver:
    """An answer is under way: 400 ms and four words of it."""
    driver.user_turn("Tell me a story")
    driver.model_audio(200, "Once upon ")
    driver.model_audio(200, "a time ")
    driver.events()
    return driver


@pytest.mark.parametrize("name", STOPS)
def test_every_way_to_stop_ends_the_answer_once_with_its_reason(
    driver: SessionDriver, name: str
) -> None:
    command, reason = STOPS[name]
    speaking(driver)
    driver.send(command)

    cleared = ["OutputCleared"] if name == "output clear" else []
    assert driver.kinds() == cleared + ENDING
    done = driver.last(ResponseDone).response
    assert done.status == "cancelled"
    assert done.status_details
    assert (done.status_details.type, done.status_details.reason) == ("cancelled", reason)
    assert [item.status for item in done.output] == ["cancelled"]


@pytest.mark.parametrize("name", STOPS)
def test_the_epoch_comes_first_then_the_abort_then_the_queue_then_the_ending(
    driver: SessionDriver, name: str
) -> None:
    speaking(driver)
    before, seen = driver.session.epoch, len(driver.effects)
    driver.send(STOPS[name][0])

    assert driver.session.epoch == before + 1
    assert driver.model.cancel_epochs == [before + 1]
    effects = [e for e in driver.effects[seen:] if not hasattr(e, "stage_id")]
    assert effects[0] == Abort((driver.key,))
    assert effects[1] == DropQueuedAudio("resp_1")
    assert all(isinstance(effect, Emit) for effect in effects[2:])
    facts = driver.last(ResponseDone).response.facts
    assert facts
    assert facts.epoch == before + 1


@pytest.mark.parametrize("name", STOPS)
def test_nothing_of_a_stopped_answer_follows_its_ending(driver: SessionDriver, name: str) -> None:
    speaking(driver)
    key = driver.key
    driver.send(STOPS[name][0])
    driver.events()
    driver.model_audio(200, "there was", key=key)
    driver.model_text("there was", key=key)
    driver.model_ends(key=key)

    assert driver.events() == []


def test_audio_already_in_flight_is_dropped(driver: SessionDriver) -> None:
    speaking(driver)
    driver.send(CancelResponse())
    driver.model_audio(200, "late", key="answer_1")

    assert driver.deltas_of("resp_1") == 2
    assert driver.aborted == ["answer_1"]


def test_the_item_and_the_next_prompt_hold_only_what_was_heard(driver: SessionDriver) -> None:
    driver.user_turn("Tell me a story")
    driver.model_audio(1000, "Once upon a time ")
    driver.model_audio(1000, "there was a king.")
    driver.send(AckPlayback(played_ms=1000))
    driver.send(CancelResponse())
    (item,) = driver.last(ResponseDone).response.output
    assert item.content
    assert item.content[0].transcript == "Once upon a time"

    driver.user_turn("And then?")
    assert driver.said == [
        ("user", "Tell me a story"),
        ("assistant", "Once upon a time"),
        ("user", "And then?"),
    ]


def test_an_answer_nobody_heard_is_not_in_the_next_prompt(driver: SessionDriver) -> None:
    speaking(driver)
    driver.send(CancelResponse())
    driver.user_turn("Again")
    assert driver.said == [("user", "Tell me a story"), ("user", "Again")]


def test_an_answer_stopped_before_its_first_word_ends_just_as_well(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.events()
    driver.send(CancelResponse())

    assert driver.kinds() == [
        "ContentPartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
        "RateLimitsUpdated",
    ]


def test_cancel_and_output_clear_keep_open_input(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    for command in (CancelResponse(), ClearOutputAudio()):
        by_hand.send(CreateResponse())
        by_hand.append(300)
        by_hand.send(command)
    assert by_hand.model.heard == loud(300) + quiet(300) + loud(300)
    by_hand.commit()
    assert by_hand.model.commits == ["item_2"]


@pytest.mark.parametrize("command", [CancelInput(), BargeIn()])
def test_interruptions_drop_open_input(by_hand: SessionDriver, command: DuplexCommand) -> None:
    by_hand.append(300)
    by_hand.send(command)
    assert by_hand.kinds() == ["InputCleared"]
    assert (by_hand.session.epoch, by_hand.model.heard) == (1, b"")

    by_hand.commit()
    assert by_hand.error().code == "input_audio_buffer_empty"


def test_clearing_input_keeps_the_epoch_and_the_answer(driver: SessionDriver) -> None:
    speaking(driver)
    driver.append(300)
    driver.send(ClearInput())

    assert driver.kinds() == ["InputCleared"]
    assert (driver.session.epoch, driver.model.heard) == (0, b"")
    driver.answers((100, "there was."))


@pytest.mark.parametrize("command", [ClearInput(), CancelInput(), BargeIn()])
def test_an_utterance_that_is_dropped_has_stopped(
    driver: SessionDriver, command: DuplexCommand
) -> None:
    driver.append(300)
    driver.user_speaks(at_ms=100)
    driver.events()
    driver.send(command)

    assert driver.kinds() == ["SpeechStopped", "InputCleared"]
    started, stopped = driver.last(SpeechStarted), driver.last(SpeechStopped)
    assert (stopped.item_id, stopped.audio_end_ms) == (started.item_id, 300)
    assert driver.session.public_object().turn_state == "idle"

    driver.user_turn("Once more")
    assert driver.last(SpeechStarted).item_id != started.item_id
    assert driver.said == [("user", "Once more")]


def test_an_answer_goes_on_when_the_speech_over_it_is_cleared(open_session: OpenSession) -> None:
    detection = TurnDetection(interrupt_response=False)
    driver = open_session(
        msgspec.structs.replace(LISTENING, turn_detection=detection, overlap_policy="listen_only")
    )
    speaking(driver)
    driver.user_speaks(at_ms=100)
    driver.send(ClearInput())

    assert driver.kinds()[-2:] == ["SpeechStopped", "InputCleared"]
    assert driver.session.public_object().turn_state == "assistant_generating"
    driver.answers((100, "there was."))


def test_b03_cancelling_nothing_is_a_refusal_and_no_more(driver: SessionDriver) -> None:
    driver.send(CancelResponse(event_id="e1"))
    assert driver.kinds() == ["ErrorEvent"]
    assert (driver.error().code, driver.error().event_id) == ("response_not_active", "e1")
    assert driver.error().type == "invalid_request_error"
    assert driver.session.epoch == 0

    driver.user_turn("Still there?")
    driver.answers((100, "Yes."))
    assert driver.last(ResponseDone).response.status == "completed"


def test_cancelling_another_answer_leaves_this_one_alone(driver: SessionDriver) -> None:
    speaking(driver)
    driver.send(CancelResponse(response_id="resp_0", event_id="e1"))
    assert (driver.error().code, driver.error().param) == ("response_not_active", "response_id")
    assert driver.open_responses == ["resp_1"]

    driver.send(CancelResponse(response_id="resp_1"))
    driver.send(CancelResponse(response_id="resp_1"))
    assert len(driver.of(ResponseDone)) == 1
    assert driver.error().code == "response_not_active"


def test_a_cancel_takes_the_deferred_answer_with_it(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    by_hand.append(300)
    by_hand.commit(response_create=True)
    by_hand.send(CancelResponse())
    by_hand.transcript("item_2", "And?")
    assert by_hand.open_responses == []


# Output that is not played yet


def test_b21_clearing_a_finished_answer_releases_its_playback(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.answers((5000, "A long answer that nobody acknowledges."))
    driver.events()
    driver.send(ClearOutputAudio())
    assert driver.kinds() == ["OutputCleared"]
    assert driver.last(OutputCleared).response_id == "resp_1"
    assert driver.effects[-3:] == [
        DropQueuedAudio("resp_1"),
        Emit(OutputCleared(response_id="resp_1")),
        SetTimer(None),
    ]
    assert driver.session.epoch == 0

    driver.send(ClearOutputAudio())
    assert driver.last(OutputCleared).response_id is None
    driver.user_turn("Next")
    assert driver.open_responses == ["resp_2"]


def test_a_finished_answer_can_be_cleared_by_its_id(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.answers((1000, "One two three four five six."))
    driver.passes(500)
    driver.send(ClearOutputAudio(response_id="resp_1"))
    driver.user_turn("Next")

    assert driver.said[1] == ("assistant", "One two three")


def test_clearing_an_older_answer_stops_nothing(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.answers((100, "Hello."))
    driver.user_turn("Go on")
    driver.model_audio(200, "Well")
    driver.events()
    driver.send(ClearOutputAudio(response_id="resp_1"))

    assert driver.events() == [OutputCleared(response_id="resp_1")]
    assert driver.open_responses == ["resp_2"]


def test_an_older_answer_that_still_plays_is_cleared_by_its_id(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.answers((1000, "One two three four five six."))
    driver.passes(500)
    driver.user_turn("Go on")  # has no sound yet
    driver.send(ClearOutputAudio(response_id="resp_1"))
    driver.model_audio(200, "Well")

    assert "OutputStopped" not in driver.kinds()
    assert driver.open_responses == ["resp_2"]
    driver.send(RetrieveItem(item_id="item_resp_1"))
    content = driver.last(ItemRetrieved).item.content
    assert content
    assert content[0].transcript == "One two three"


def test_a_cut_off_answer_is_retrieved_as_heard(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.answers((1000, "One two three four five six."))
    driver.passes(500)
    driver.send(ClearOutputAudio())
    driver.send(RetrieveItem(item_id="item_resp_1"))

    content = driver.last(ItemRetrieved).item.content
    assert content
    assert content[0].transcript == "One two three"


def test_an_answer_that_is_being_made_is_retrieved_as_far_as_it_is(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.send(RetrieveItem(item_id="item_resp_1"))
    driver.model_audio(500, "One two three")
    driver.send(RetrieveItem(item_id="item_resp_1"))
    driver.model_audio(500, " four five six.")
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=500))
    driver.send(RetrieveItem(item_id="item_resp_1"))

    shown = [event.item for event in driver.events() if isinstance(event, ItemRetrieved)]
    assert [item.status for item in shown] == ["in_progress"] * 3
    words = [[part.transcript for part in item.content or ()] for item in shown]
    assert words == [[], ["One two three"], ["One two three"]]


def test_so_is_one_that_is_written(driver: SessionDriver) -> None:
    driver.says("Hi")
    driver.send(CreateResponse(response=ResponseOptions(output_modalities=("text",))))
    driver.model_text("One two three")
    driver.send(RetrieveItem(item_id="item_resp_1"))

    content = driver.last(ItemRetrieved).item.content
    assert [(part.type, part.text) for part in content or ()] == [("output_text", "One two three")]


# Text during an answer


def test_b11_typing_during_an_answer_never_makes_two_voices(driver: SessionDriver) -> None:
    speaking(driver)
    part = ContentPart(type="input_text", text="Stop, something else")
    driver.send(CreateItem(item=ItemInput(content=(part,))))
    driver.send(CreateResponse(event_id="e1"))

    assert driver.kinds() == ["ItemAdded", "ItemCreated", "ItemDone", "ErrorEvent"]
    assert (driver.error().code, driver.error().event_id) == ("response_already_active", "e1")
    assert driver.open_responses == ["resp_1"]
    driver.answers((100, "there was."))
    driver.send(CreateResponse())
    assert driver.said[-1] == ("user", "Stop, something else")


def test_text_answers_are_cancelled_alike(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    by_hand.model_text("Hello the")
    by_hand.send(CancelResponse())
    by_hand.model_text("re", key="answer_1")

    assert len(by_hand.of(TextDelta)) == 1
    assert "TextDone" in kinds(by_hand.log)
    assert by_hand.last(ResponseDone).response.status == "cancelled"
