"""Responses beside the conversation that are stopped, fail, are lost, or are never begun."""

from __future__ import annotations

import pytest
from tests.engine.duplex.session.beside import endings, history
from tests.engine.duplex.session.driver import BY_HAND, LIMITS, SessionDriver, loud
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
from omniduplex.engine.turns import TurnChunk, TurnFailure
from omniduplex.protocol.duplex import (
    CancelResponse,
    ClearOutputAudio,
    CloseSession,
    ContentPart,
    CreateItem,
    CreateResponse,
    ErrorEvent,
    ItemInput,
    OutputCleared,
    ResponseCreated,
    ResponseOptions,
    SessionClosed,
)

AT_ONCE = LIMITS.max_out_of_band_responses_per_session


@pytest.fixture
def turns() -> ScriptedTurns:
    """The model answers without a session, too."""
    return ScriptedTurns()


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


def test_the_end_of_its_session_is_the_last_event(driver: SessionDriver) -> None:
    driver.asks_beside()
    driver.send(CloseSession(reason="bye"))
    assert isinstance(driver.log[-1], SessionClosed)
    assert driver.kinds()[-3:] == ["ResponseDone", "RateLimitsUpdated", "SessionClosed"]


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


def test_unknown_conversations_are_none_of_ours(driver: SessionDriver) -> None:
    driver.send(CreateResponse(response=ResponseOptions(conversation="other")))
    assert driver.error().param == "response.conversation"
