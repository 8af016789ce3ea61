"""Responses beside the conversation (`conversation: none`): it knows nothing of them."""

from __future__ import annotations

import msgspec
import pytest
from tests.engine.duplex.session.beside import endings, history
from tests.engine.duplex.session.driver import LIMITS, LISTENING, SessionDriver
from tests.engine.duplex.session.scripted_turns import ScriptedTurns

from omniduplex.engine.turns import TurnChunk, TurnMessage, TurnToolCall, TurnUsage
from omniduplex.protocol.duplex import (
    AckPlayback,
    AudioDelta,
    Commit,
    ContentPart,
    CreateResponse,
    DeleteItem,
    DuplexEvent,
    FunctionCallDone,
    ItemInput,
    OutputStarted,
    OutputStopped,
    PlaybackAcknowledged,
    ResponseDone,
    RetrieveItem,
    SpeechStarted,
    TextDelta,
)

AT_ONCE = LIMITS.max_out_of_band_responses_per_session


@pytest.fixture
def turns() -> ScriptedTurns:
    """The model answers without a session, too."""
    return ScriptedTurns()


def of_response(driver: SessionDriver, response_id: str) -> list[str]:
    """Names of the events that are of this response."""
    return [type(event).__name__ for event in driver.log if response_of(event) == response_id]


def response_of(event: DuplexEvent) -> object:
    return getattr(event, "response_id", None)


# Beside an answer


def test_a_text_beside_a_spoken_answer(driver: SessionDriver) -> None:
    driver.user_turn("Tell me a story")
    driver.model_audio(200, "Once ")
    turn = driver.asks_beside(metadata={"topic": "mood"})
    driver.turn_says(turn, "cheer")
    driver.model_audio(200, "upon a time.")
    driver.turn_says(turn, "ful")
    driver.turn_ends(turn)
    driver.model_ends()

    assert endings(driver) == {"resp_2": "completed", "resp_1": "completed"}
    assert of_response(driver, "resp_1") == [
        "ResponseCreated",
        "OutputItemAdded",
        "ContentPartAdded",
        "OutputStarted",
        "SpeakDecision",
        *["AudioDelta", "TranscriptDelta"] * 2,
        "AudioDone",
        "TranscriptDone",
        "ContentPartDone",
        "OutputItemDone",
        "ResponseDone",
    ]
    assert of_response(driver, "resp_2") == [
        "ResponseCreated",
        "OutputItemAdded",
        "ContentPartAdded",
        "TextDelta",
        "TextDelta",
        "TextDone",
        "ContentPartDone",
        "OutputItemDone",
        "ResponseDone",
    ]
    beside = driver.of(ResponseDone)[0].response
    assert beside.metadata == {"topic": "mood"}
    assert beside.conversation_id is None
    assert beside.facts
    assert beside.facts.committed is False


def test_several_are_told_apart_by_their_ids(driver: SessionDriver) -> None:
    first, second = driver.asks_beside(), driver.asks_beside()
    driver.turn_says(second, "two")
    driver.turn_says(first, "one")
    driver.turn_ends(second)
    driver.turn_ends(first)

    said = [(event.response_id, event.delta) for event in driver.of(TextDelta)]
    assert said == [("resp_2", "two"), ("resp_1", "one")]
    assert list(endings(driver)) == ["resp_2", "resp_1"]


def test_an_answer_begins_while_one_beside_it_is_under_way(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    turn = by_hand.asks_beside()
    by_hand.send(CreateResponse())
    by_hand.answers((100, "Hello."))
    assert endings(by_hand) == {"resp_2": "completed"}

    by_hand.turn_ends(turn)
    assert endings(by_hand) == {"resp_2": "completed", "resp_1": "completed"}


def test_a_second_answer_in_the_conversation_is_still_refused(by_hand: SessionDriver) -> None:
    by_hand.asks_beside()
    by_hand.send(CreateResponse())
    by_hand.send(CreateResponse())
    assert by_hand.error().code == "response_already_active"
    assert by_hand.error().param is None
    assert by_hand.open_responses == ["resp_1", "resp_2"]


def test_only_so_many_are_under_way_at_once(driver: SessionDriver) -> None:
    running = [driver.asks_beside() for _ in range(AT_ONCE)]
    driver.events()
    driver.asks_beside()
    assert driver.kinds() == ["ErrorEvent"]
    assert driver.error().code == "too_many_responses"

    driver.turn_ends(running[0])
    driver.asks_beside()
    assert len(driver.open_responses) == AT_ONCE


# What the model is asked


def test_without_an_input_the_conversation_is_what_it_answers(
    driver: SessionDriver, turns: ScriptedTurns
) -> None:
    driver.user_turn("Tell me a story")
    driver.answers((200, "No."))
    driver.passes(1000)
    turn = driver.asks_beside(instructions="How does the user feel?", max_output_tokens=5)

    assert turn is not None
    asked = turns.asked[turn]
    assert asked.messages == (
        TurnMessage(role="system", content=("How does the user feel?",)),
        TurnMessage(role="user", content=("Tell me a story",)),
        TurnMessage(role="assistant", content=("No.",)),
    )
    assert asked.modalities == {"text"}
    assert asked.max_tokens == 5


def test_an_input_stands_in_for_the_conversation(
    driver: SessionDriver, turns: ScriptedTurns
) -> None:
    driver.says("Hi")
    driver.says("What is the time?", "asked")
    wrote = ItemInput(role="assistant", content=(ContentPart(type="output_text", text="Noon."),))
    reference = ItemInput(type="item_reference", id="asked")
    turn = driver.asks_beside(input=(reference, wrote), output_modalities=("audio",))

    assert turn is not None
    asked = turns.asked[turn]
    assert asked.messages == (
        TurnMessage(role="user", content=("What is the time?",)),
        TurnMessage(role="assistant", content=("Noon.",)),
    )
    assert asked.speak


def test_tool_calls_and_usage_are_told(driver: SessionDriver) -> None:
    turn = driver.asks_beside(tools=({"type": "function", "name": "note"},))
    call = TurnToolCall(call_id="c1", name="note", arguments='{"a":1}')
    driver.turn_makes(turn, TurnChunk(tool_calls=(call,)))
    usage = TurnUsage(input_tokens=7, output_tokens=3)
    driver.turn_makes(turn, TurnChunk(finish_reason="tool_calls", usage=usage))

    assert driver.last(FunctionCallDone).call_id == "c1"
    done = driver.last(ResponseDone).response
    assert [item.type for item in done.output] == ["function_call"]
    assert done.usage
    assert done.usage.total_tokens == 10
    assert history(driver) == []


def test_a_call_beside_no_sound_opens_no_message_for_one(driver: SessionDriver) -> None:
    turn = driver.asks_beside(modalities=["audio"], tools=({"type": "function", "name": "note"},))
    call = TurnToolCall(call_id="c1", name="note", arguments="{}")
    driver.turn_makes(
        turn, TurnChunk(sample_rate_hz=24_000, tool_calls=(call,), finish_reason="tool_calls")
    )

    done = driver.last(ResponseDone).response
    assert [item.type for item in done.output] == ["function_call"]


def test_what_meets_its_limit_is_incomplete(driver: SessionDriver) -> None:
    turn = driver.asks_beside()
    driver.turn_says(turn, "Well")
    driver.turn_ends(turn, "length")
    assert endings(driver) == {"resp_1": "incomplete"}


def test_words_that_are_still_recognised_are_waited_for(
    by_hand: SessionDriver, turns: ScriptedTurns
) -> None:
    by_hand.append()
    by_hand.commit(response_create=False)
    assert by_hand.asks_beside() is None
    assert by_hand.open_responses == ["resp_1"]
    by_hand.transcript(by_hand.model.commits[0], "Hello there")

    (asked,) = turns.asked.values()
    assert [message.content for message in asked.messages] == [("Hello there",)]
    by_hand.turn_ends(by_hand.running[0])
    assert endings(by_hand) == {"resp_1": "completed"}


def test_words_that_never_come_fail_all_that_waits_for_them(by_hand: SessionDriver) -> None:
    by_hand.append()
    by_hand.commit(response_create=True)
    by_hand.asks_beside()
    by_hand.unheard(by_hand.model.commits[0])
    assert endings(by_hand) == {"resp_1": "failed", "resp_2": "failed"}


def test_what_waited_for_a_deleted_item_is_asked_without_it(
    by_hand: SessionDriver, turns: ScriptedTurns
) -> None:
    by_hand.append()
    by_hand.commit(response_create=False)
    by_hand.asks_beside()
    by_hand.send(DeleteItem(item_id=by_hand.model.commits[0]))
    (asked,) = turns.asked.values()
    assert asked.messages == ()


def test_options_of_the_session_hold_and_its_own_come_first(
    turns: ScriptedTurns,
) -> None:
    configured = msgspec.structs.replace(LISTENING, instructions="Rhyme.", temperature=0.5)
    driver = SessionDriver(configured, turns=turns)
    plain, cool = driver.asks_beside(), driver.asks_beside(temperature=0.0)
    assert plain is not None
    assert cool is not None
    assert turns.asked[plain].messages == (TurnMessage(role="system", content=("Rhyme.",)),)
    assert [turns.asked[turn].temperature for turn in (plain, cool)] == [0.5, 0.0]


# The conversation knows nothing of it


def test_nothing_of_it_is_in_the_history(driver: SessionDriver) -> None:
    driver.says("Hi")
    before = history(driver)
    turn = driver.asks_beside(output_modalities=("audio",))
    driver.turn_says(turn, "Hello.", ms=300)
    driver.turn_ends(turn)
    assert history(driver) == before

    driver.send(RetrieveItem(item_id="item_resp_1"))
    assert driver.error().code == "item_retrieve_invalid_item_id"
    driver.user_turn("And you?")
    assert driver.said == [("user", "Hi"), ("user", "And you?")]


def test_its_sound_carries_its_id_and_is_nobodys_turn(driver: SessionDriver) -> None:
    turn = driver.asks_beside(output_modalities=("audio",))
    driver.turn_says(turn, "Aside. ", ms=5000)
    assert [event.response_id for event in driver.of(AudioDelta)] == ["resp_1"]
    assert driver.of(OutputStarted) == []
    shown = driver.session.public_object()
    assert (shown.turn_state, shown.active_response_id) == ("idle", None)
    assert shown.playback.generated_ms == 0

    driver.events()
    driver.user_speaks()
    assert driver.kinds() == ["SpeechStarted"]
    driver.turn_says(turn, "Still here.", ms=100)
    driver.turn_ends(turn)
    assert endings(driver) == {"resp_1": "completed"}


def test_speech_stops_the_answer_and_not_what_is_beside_it(driver: SessionDriver) -> None:
    driver.user_turn("Tell me a story")
    driver.model_audio(2000, "Once ")
    turn = driver.asks_beside()
    driver.user_speaks(5000)
    assert driver.of(SpeechStarted)
    assert endings(driver) == {"resp_1": "cancelled"}

    driver.turn_says(turn, "cheerful")
    driver.turn_ends(turn)
    assert endings(driver) == {"resp_1": "cancelled", "resp_2": "completed"}


def test_a_draft_is_shown_although_something_else_was_asked(driver: SessionDriver) -> None:
    driver.user_speaks()
    driver.user_pauses("Hi")
    drafted = driver.key
    driver.asks_beside()
    driver.user_turn_ends("Hi")
    assert driver.aborted == []
    driver.model_audio(100, "Hello.", key=drafted)
    driver.model_ends(key=drafted)
    assert endings(driver) == {"resp_2": "completed"}


def test_a_report_of_what_was_heard_of_it_counts_for_it_alone(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.answers((1000, "Hello."))
    turn = driver.asks_beside(output_modalities=("audio",))
    driver.turn_says(turn, "Aside.", ms=400)
    driver.turn_ends(turn)
    driver.send(AckPlayback(response_id="resp_2", item_id="item_resp_2", played_ms=300))
    told = driver.last(PlaybackAcknowledged).event
    assert (told.played_ms, told.history_committed) == (300, False)

    # Its client has still told nothing of any answer: it has played them all as time went by.
    driver.passes(1000)
    assert [event.response_id for event in driver.of(OutputStopped)] == ["resp_1"]


def test_a_commit_over_it_is_answered_at_once(by_hand: SessionDriver) -> None:
    by_hand.asks_beside(output_modalities=("audio",))
    by_hand.append()
    by_hand.send(Commit(response_create=True))
    assert by_hand.open_responses == ["resp_1", "resp_2"]
    by_hand.transcript(by_hand.model.commits[0], "Hi")
    by_hand.answers((100, "Hello."))
    assert endings(by_hand) == {"resp_2": "completed"}
