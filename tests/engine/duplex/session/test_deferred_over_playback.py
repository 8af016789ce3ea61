"""A turn committed over an answer that is made and still played: wire contract, section 7.2."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, SessionDriver, loud
from tests.engine.duplex.session.over_an_answer import TO_THE_END, answering, facts_of

from omniduplex.engine.duplex.session.inputs import AnswersGivenUp
from omniduplex.engine.duplex.session.playout import REPORT_LATE_S
from omniduplex.protocol.duplex import (
    AckPlayback,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearOutputAudio,
    CreateResponse,
    DeleteItem,
    Dialect,
    DuplexSessionConfig,
    InputCommit,
    ResponseCreated,
    SessionPatch,
    TruncateItem,
    TurnDetectionPatch,
    UpdateSession,
)

ACK_ONLY = msgspec.structs.replace(BY_HAND, playback_commit_policy="ack_only")
ANSWER_MS = 2000
Stop = BargeIn | CancelInput | ClearOutputAudio | TruncateItem | AckPlayback
HEARD_OUT = AckPlayback(played_ms=ANSWER_MS)


@pytest.fixture
def playing(open_session: OpenSession) -> SessionDriver:
    """An answer is whole, and its client has not heard it yet."""
    driver = answering(open_session(ACK_ONLY))
    driver.model_ends()
    return driver


@pytest.fixture
def waiting(playing: SessionDriver) -> SessionDriver:
    """A turn was said over it and committed, and is to be answered."""
    playing.append(800)
    playing.send(InputCommit())
    playing.transcript("item_2", "And then?")
    return playing


def test_the_turn_is_deferred_and_answered_when_the_answer_was_heard(
    waiting: SessionDriver,
) -> None:
    facts = facts_of(waiting)
    assert (facts.overlap_deferred, facts.response_create_deferred) == (True, True)
    assert facts.overlap_ack is msgspec.UNSET
    assert waiting.model.heard == loud(800)
    assert waiting.open_responses == []

    waiting.send(AckPlayback(played_ms=ANSWER_MS - 1))
    assert waiting.open_responses == []
    waiting.send(HEARD_OUT)
    assert waiting.open_responses == ["resp_2"]
    assert waiting.said == [
        ("user", "Tell me a story"),
        ("assistant", "Once upon a time there was a king. "),
        ("user", "And then?"),
    ]
    waiting.answers((100, "He died."))
    waiting.passes(60_000)
    assert waiting.open_responses == []


def test_it_waits_for_its_words_then(playing: SessionDriver) -> None:
    playing.append(800)
    playing.send(InputCommit())
    playing.send(HEARD_OUT)
    assert playing.open_responses == ["resp_2"]
    assert len(playing.prompts) == 1
    playing.transcript("item_2", "And then?")
    assert playing.said[-1] == ("user", "And then?")


def test_without_a_report_it_is_answered_after_what_a_late_one_may_take(
    waiting: SessionDriver,
) -> None:
    waiting.send(AckPlayback(played_ms=500))
    waiting.passes(ANSWER_MS + REPORT_LATE_S * 1000 - 1)
    assert waiting.open_responses == []
    waiting.passes(1)
    assert waiting.open_responses == ["resp_2"]
    role, text = waiting.said[1]
    assert role == "assistant"
    assert text
    assert "king" not in text  # which its client never said was heard
    assert waiting.wakes_at is None


def test_a_turn_that_wants_no_answer_is_kept_for_later(playing: SessionDriver) -> None:
    playing.append(800)
    playing.commit(response_create=False)
    playing.transcript("item_2", "And then?")
    facts = facts_of(playing)
    assert (facts.overlap_deferred, facts.response_create_deferred) == (True, False)
    playing.send(HEARD_OUT)
    assert playing.open_responses == []


def test_a_short_commit_over_it_acknowledges_it(playing: SessionDriver) -> None:
    playing.append(300)
    playing.send(InputCommit())
    assert facts_of(playing).overlap_ack is True
    playing.send(HEARD_OUT)
    assert playing.open_responses == []


def test_two_turns_over_it_have_one_answer(waiting: SessionDriver) -> None:
    waiting.append(900)
    waiting.send(InputCommit())
    waiting.transcript("item_3", "And his queen?")
    assert facts_of(waiting).response_create_deferred is True
    waiting.send(HEARD_OUT)
    assert [text for _, text in waiting.said[2:]] == ["And then?", "And his queen?"]
    waiting.answers((100, "They died."))
    waiting.passes(60_000)
    assert waiting.open_responses == []


def test_what_is_said_after_the_commit_is_the_next_turn(waiting: SessionDriver) -> None:
    waiting.append(900)
    waiting.send(HEARD_OUT)
    assert waiting.model.heard == loud(900)
    assert waiting.model.commits == ["item_2"]
    assert waiting.open_responses == ["resp_2"]


# What ends the wait otherwise


@pytest.mark.parametrize(
    "stop",
    [
        BargeIn(),
        CancelInput(),
        ClearOutputAudio(),
        TruncateItem(item_id="item_resp_1", audio_end_ms=700),
        AckPlayback(played_ms=700, truncate=True),
    ],
    ids=lambda command: type(command).__name__,
)
def test_with_a_playback_that_is_cut_short_the_wish_goes(
    waiting: SessionDriver, stop: Stop
) -> None:
    waiting.send(stop)
    waiting.passes(60_000)
    assert waiting.open_responses == []
    assert len(waiting.of(ResponseCreated)) == 1
    waiting.send(CreateResponse())
    assert waiting.said[-1] == ("user", "And then?")


def test_an_append_that_interrupts_takes_the_wish_with_it(waiting: SessionDriver) -> None:
    waiting.append(300, force_barge_in=True)
    waiting.passes(60_000)
    assert len(waiting.of(ResponseCreated)) == 1


def test_an_answer_that_its_client_did_not_read_takes_the_wish_with_it(
    waiting: SessionDriver,
) -> None:
    waiting.feed(AnswersGivenUp(("resp_1",)))
    waiting.passes(60_000)
    assert len(waiting.of(ResponseCreated)) == 1


def test_what_is_truncated_at_its_end_was_heard(waiting: SessionDriver) -> None:
    waiting.send(TruncateItem(item_id="item_resp_1", audio_end_ms=ANSWER_MS))
    assert waiting.open_responses == ["resp_2"]


def test_an_answer_that_is_deleted_is_not_waited_for(waiting: SessionDriver) -> None:
    waiting.send(DeleteItem(item_id="item_resp_1"))
    assert waiting.open_responses == ["resp_2"]


def test_there_is_nothing_to_cancel_while_it_waits(waiting: SessionDriver) -> None:
    waiting.send(CancelResponse())
    assert waiting.error().code == "response_not_active"
    waiting.send(HEARD_OUT)
    assert waiting.open_responses == ["resp_2"]


def test_who_asks_for_an_answer_meanwhile_has_the_one_there_is(waiting: SessionDriver) -> None:
    waiting.send(CreateResponse())
    assert waiting.said[-1] == ("user", "And then?")
    waiting.answers((100, "He died."))
    waiting.passes(60_000)
    assert len(waiting.of(ResponseCreated)) == 2


@pytest.mark.parametrize("ask", [CreateResponse(), TO_THE_END], ids=["cut", "to the end"])
def test_an_ear_that_hears_the_next_turn_meanwhile_answers_both(
    open_session: OpenSession, ask: CreateResponse
) -> None:
    driver = answering(open_session(ACK_ONLY), ask)
    driver.model_ends()
    driver.append(800)
    driver.send(InputCommit())
    driver.transcript("item_2", "And then?")
    detection = TurnDetectionPatch(type="server_vad")
    driver.send(UpdateSession(session=SessionPatch(turn_detection=detection)))
    driver.user_speaks()
    driver.user_pauses("And his queen, did she die as well?")
    driver.user_turn_ends("And his queen, did she die as well?")

    assert driver.open_responses == ["resp_2"]
    assert driver.said[1:] == [
        ("user", "And then?"),
        ("user", "And his queen, did she die as well?"),
    ]
    driver.answers((100, "They died."))
    driver.passes(60_000)
    assert len(driver.of(ResponseCreated)) == 2


# Who is not concerned


@pytest.mark.parametrize(
    "config",
    [
        BY_HAND,
        msgspec.structs.replace(ACK_ONLY, auto_response=True, overlap_policy="adaptive"),
        msgspec.structs.replace(ACK_ONLY, dialect=Dialect.OPENAI),
    ],
    ids=["no reports", "the model answers", "stock"],
)
def test_others_are_answered_at_once(
    open_session: OpenSession, config: DuplexSessionConfig
) -> None:
    driver = answering(open_session(config))
    driver.model_ends()
    driver.append(800)
    driver.send(InputCommit())
    assert facts_of(driver).overlap_deferred is msgspec.UNSET
    assert driver.open_responses == ["resp_2"]


def test_a_turn_begun_before_the_answer_and_committed_over_it_is_answered_at_once(
    open_session: OpenSession,
) -> None:
    driver = open_session(ACK_ONLY)
    driver.append(800)
    answering(driver).model_ends()
    driver.send(InputCommit())
    assert facts_of(driver).overlap_deferred is msgspec.UNSET
    assert driver.open_responses == ["resp_2"]
