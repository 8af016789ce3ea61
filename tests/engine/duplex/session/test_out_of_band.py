"""Responses beside the conversation (`conversation: none`): it knows nothing of them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from tests.engine.duplex.session.contract import ContractWatcher
from tests.engine.duplex.session.driver import BY_HAND, LIMITS, LISTENING, SessionDriver, loud
from tests.engine.duplex.session.scripted_model import ScriptedPlugin
from tests.engine.duplex.session.scripted_turns import ScriptedTurns

from omniduplex.engine.duplex.session.effects import DropQueuedAudio
from omniduplex.engine.duplex.session.inputs import (
    AnswersGivenUp,
    CloseRequest,
    OutputOverflow,
    StageLost,
)
from omniduplex.engine.messages import AbortTurn
from omniduplex.engine.turns import TurnChunk, TurnFailure, TurnMessage, TurnToolCall, TurnUsage
from omniduplex.protocol.duplex import (
    AckPlayback,
    AudioDelta,
    CancelResponse,
    ClearOutputAudio,
    CloseSession,
    Commit,
    ContentPart,
    CreateItem,
    CreateResponse,
    DeleteItem,
    DuplexEvent,
    ErrorEvent,
    FunctionCallDone,
    ItemAdded,
    ItemInput,
    OutputCleared,
    OutputStarted,
    OutputStopped,
    PlaybackAcknowledged,
    ResponseCreated,
    ResponseDone,
    ResponseOptions,
    RetrieveItem,
    SessionClosed,
    SpeechStarted,
    TextDelta,
)

AT_ONCE = LIMITS.max_out_of_band_responses_per_session


@pytest.fixture
def turns() -> ScriptedTurns:
    return ScriptedTurns()


@pytest.fixture
def driver(turns: ScriptedTurns) -> Iterator[SessionDriver]:
    """The server ends turns and answers them; its model answers without a session, too."""
    driver = SessionDriver(LISTENING, turns=turns)
    yield driver
    ContractWatcher().watch(driver.log)


@pytest.fixture
def by_hand(turns: ScriptedTurns) -> Iterator[SessionDriver]:
    """The client ends turns and asks for answers."""
    driver = SessionDriver(BY_HAND, turns=turns)
    yield driver
    ContractWatcher().watch(driver.log)


def of_response(driver: SessionDriver, response_id: str) -> list[str]:
    """Names of the events that are of this response."""
    return [type(event).__name__ for event in driver.log if response_of(event) == response_id]


def response_of(event: DuplexEvent) -> object:
    return getattr(event, "response_id", None)


def endings(driver: SessionDriver) -> dict[str, str]:
    """How each response ended."""
    done = driver.of(ResponseDone)
    assert len({event.response_id for event in done}) == len(done)
    return {event.response_id: event.response.status for event in done}


def history(driver: SessionDriver) -> list[str]:
    return [event.item.id for event in driver.of(ItemAdded)]


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


# Stopping it


def test_a_cancel_stops_the_one_it_names(driver: SessionDriver) -> None:
    driver.user_turn("Tell me a story")
    driver.model_audio(200, "Once ")
    first, second = driver.asks_beside(), driver.asks_beside(output_modalities=("audio",))
    driver.turn_says(second, "Aside. ", ms=100)
    driver.send(CancelResponse(response_id="resp_3"))

    assert endings(driver) == {"resp_3": "cancelled"}
    assert driver.session.epoch == 0
    assert driver.running == [first]
    assert DropQueuedAudio("resp_3") in driver.effects
    shown = len(driver.log)
    driver.turn_says(second, "late", ms=100)
    driver.turn_ends(second)
    assert len(driver.log) == shown
    assert driver.open_responses == ["resp_1", "resp_2"]


def test_a_cancel_that_names_none_is_about_the_conversation(driver: SessionDriver) -> None:
    driver.asks_beside()
    driver.send(CancelResponse())
    assert driver.error().code == "response_not_active"
    assert driver.open_responses == ["resp_1"]

    driver.user_turn("Hi")
    driver.send(CancelResponse())
    assert endings(driver) == {"resp_2": "cancelled"}
    assert driver.open_responses == ["resp_1"]


def test_a_cancel_of_what_is_over_is_refused_and_forgoes_no_answer(by_hand: SessionDriver) -> None:
    turn = by_hand.asks_beside()
    by_hand.turn_ends(turn)
    by_hand.send(CreateResponse())
    by_hand.append(pcm=loud(3000))
    by_hand.commit(response_create=True)
    by_hand.send(CancelResponse(response_id="resp_1"))
    by_hand.converted()
    assert by_hand.error().code == "response_not_active"
    by_hand.answers((100, "First."))
    by_hand.transcript(by_hand.model.commits[0], "Go on")
    assert by_hand.open_responses == ["resp_3"]


def test_a_cancel_leaves_what_waits_to_be_asked_beside(by_hand: SessionDriver) -> None:
    by_hand.send(CreateResponse())
    by_hand.append(pcm=loud(3000))
    by_hand.asks_beside()
    assert by_hand.open_responses == ["resp_1"]
    by_hand.send(CancelResponse())
    by_hand.converted()
    assert endings(by_hand) == {"resp_1": "cancelled"}
    assert by_hand.open_responses == ["resp_2"]


def test_clearing_its_sound_stops_it(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello ")
    driver.asks_beside(output_modalities=("audio",))
    driver.send(ClearOutputAudio(response_id="resp_2"))
    assert [event.response_id for event in driver.of(OutputCleared)] == ["resp_2"]
    assert endings(driver) == {"resp_2": "cancelled"}
    assert driver.open_responses == ["resp_1"]


def test_a_turn_that_fails_fails_it_alone(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    turn = driver.asks_beside()
    driver.turn_says(turn, "Well")
    driver.turn_makes(turn, TurnFailure("out of words"))
    assert driver.error().code == "runtime_data_plane_stream_failed"
    assert endings(driver) == {"resp_2": "failed"}
    driver.answers((100, "Hello."))
    assert endings(driver)["resp_1"] == "completed"


@pytest.mark.parametrize("before", [0, 2])
def test_sound_without_its_rate_fails_it_alone(driver: SessionDriver, before: int) -> None:
    turn = driver.asks_beside(output_modalities=("audio",))
    for _ in range(before):
        driver.turn_makes(turn, TurnChunk(pcm=bytes(480), sample_rate_hz=24_000))
    driver.turn_makes(turn, TurnChunk(pcm=bytes(480)))
    assert endings(driver) == {"resp_1": "failed"}
    assert driver.running == []
    assert not driver.session.closed


# How the session ends


@pytest.mark.parametrize(
    "end",
    [
        CloseSession(),
        CloseRequest(reason="idle_ttl_expired", expired=True),
        StageLost(0, "the worker died"),
        OutputOverflow(),
    ],
)
def test_each_has_its_ending_before_the_session_has(
    driver: SessionDriver, end: CloseSession | CloseRequest | StageLost | OutputOverflow
) -> None:
    for _ in range(3):
        driver.asks_beside()
    driver.feed(end)

    assert len(endings(driver)) == 3
    assert driver.running == []
    assert driver.session.closed


def test_a_session_with_something_under_way_is_not_idle(driver: SessionDriver) -> None:
    idle_at = driver.session.next_look_at
    driver.asks_beside()
    assert idle_at is not None
    assert driver.session.next_look_at is None


def test_a_slow_reader_loses_the_response_that_it_does_not_read(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    unread, _ = driver.asks_beside(), driver.asks_beside()
    driver.feed(AnswersGivenUp(("resp_2",)))

    assert endings(driver) == {"resp_2": "failed"}
    stopped = [effect.turn_id for effect in driver.effects if isinstance(effect, AbortTurn)]
    assert stopped == [unread]
    assert driver.open_responses == ["resp_1", "resp_3"]


def test_a_slow_reader_that_loses_its_session_loses_all_responses(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    heard_of, unheard_of = driver.asks_beside(), driver.asks_beside()
    driver.feed(OutputOverflow(unannounced=frozenset({"resp_3"})))

    assert endings(driver) == {"resp_1": "failed", "resp_2": "failed"}
    stopped = [effect.turn_id for effect in driver.effects if isinstance(effect, AbortTurn)]
    assert stopped == [heard_of, unheard_of]


# Who cannot


def test_a_model_without_turns_answers_in_its_conversation_alone() -> None:
    driver = SessionDriver(BY_HAND)
    driver.says("Hi")
    driver.send(CreateResponse())
    driver.asks_beside()
    assert driver.error().code == "response_already_active"
    assert driver.error().param == "response.conversation"
    driver.answers((100, "Hello."))

    driver.asks_beside()
    assert driver.open_responses == ["resp_2"]
    driver.model_text("Aside.")
    driver.model_ends()
    assert endings(driver)["resp_2"] == "completed"
    assert [item for item in history(driver) if item == "item_resp_2"] == []


def test_what_the_model_refuses_is_never_begun(driver: SessionDriver, turns: ScriptedTurns) -> None:
    turns.refuses = True
    driver.asks_beside()
    assert driver.error().code == "unsupported"
    assert driver.of(ResponseCreated) == []


def test_what_the_model_refuses_later_fails(by_hand: SessionDriver, turns: ScriptedTurns) -> None:
    by_hand.append()
    by_hand.commit(response_create=False)
    by_hand.asks_beside()
    turns.refuses = True
    by_hand.transcript(by_hand.model.commits[0], "Hello")
    assert endings(by_hand) == {"resp_1": "failed"}


def test_a_turn_has_no_eyes(turns: ScriptedTurns) -> None:
    plugin = ScriptedPlugin()
    plugin.sees = True
    driver = SessionDriver(BY_HAND, plugin=plugin, turns=turns)
    picture = ContentPart(type="input_image", image_url="data:image/png;base64,iVBORw0KGgo=")
    driver.send(CreateItem(item=ItemInput(role="user", content=(picture,))))
    assert driver.of(ErrorEvent) == []
    driver.asks_beside()
    assert driver.error().code == "unsupported"


def test_options_of_the_session_hold_and_its_own_come_first(
    driver: SessionDriver, turns: ScriptedTurns
) -> None:
    configured = msgspec.structs.replace(LISTENING, instructions="Rhyme.", temperature=0.5)
    driver = SessionDriver(configured, turns=turns)
    plain, cool = driver.asks_beside(), driver.asks_beside(temperature=0.0)
    assert plain is not None
    assert cool is not None
    assert turns.asked[plain].messages == (TurnMessage(role="system", content=("Rhyme.",)),)
    assert [turns.asked[turn].temperature for turn in (plain, cool)] == [0.5, 0.0]


def test_a_commit_over_it_is_answered_at_once(by_hand: SessionDriver) -> None:
    by_hand.asks_beside(output_modalities=("audio",))
    by_hand.append()
    by_hand.send(Commit(response_create=True))
    assert by_hand.open_responses == ["resp_1", "resp_2"]
    by_hand.transcript(by_hand.model.commits[0], "Hi")
    by_hand.answers((100, "Hello."))
    assert endings(by_hand) == {"resp_2": "completed"}


def test_the_end_of_its_session_is_the_last_event(driver: SessionDriver) -> None:
    driver.asks_beside()
    driver.send(CloseSession(reason="bye"))
    assert isinstance(driver.log[-1], SessionClosed)
    assert driver.kinds()[-3:] == ["ResponseDone", "RateLimitsUpdated", "SessionClosed"]


def test_unknown_conversations_are_none_of_ours(driver: SessionDriver) -> None:
    driver.send(CreateResponse(response=ResponseOptions(conversation="other")))
    assert driver.error().param == "response.conversation"
