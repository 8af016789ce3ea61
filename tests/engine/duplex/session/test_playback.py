"""What was heard of an answer: wire contract, section 9."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver

from omniduplex.protocol.duplex import (
    AckPlayback,
    CancelResponse,
    CreateResponse,
    DeleteItem,
    ItemRetrieved,
    ItemTruncated,
    PlaybackAcknowledged,
    PlaybackFacts,
    ResponseDone,
    RetrieveItem,
    SessionPatch,
    TruncateItem,
    UpdateSession,
)

WORDS = "One two three four five six."
"""Spoken evenly in 2400 ms: 12 ms or so a letter."""
ACK_ONLY = msgspec.structs.replace(LISTENING, playback_commit_policy="ack_only")


def answered(driver: SessionDriver) -> SessionDriver:
    """One whole answer of 2400 ms."""
    driver.user_turn("Count")
    driver.answers((2400, WORDS))
    driver.events()
    return driver


def heard(driver: SessionDriver) -> str | None:
    """The first answer, as the next prompt has it."""
    driver.user_turn("Next")
    texts = [text for role, text in driver.said if role == "assistant"]
    return texts[0] if texts else None


def facts(driver: SessionDriver) -> PlaybackFacts:
    return driver.last(PlaybackAcknowledged).event


def test_acknowledgements_are_cumulative_and_never_fall(driver: SessionDriver) -> None:
    answered(driver)
    for played in (400, 1200, 800):
        driver.send(AckPlayback(played_ms=played))

    told = [event.event.played_ms for event in driver.of(PlaybackAcknowledged)]
    assert told == [400, 1200, 1200]
    cursor = facts(driver).playback
    assert (cursor.generated_ms, cursor.sent_ms, cursor.committed_ms) == (2400, 2400, 1200)
    assert facts(driver).item_id == "item_resp_1"


def test_only_an_acknowledgement_that_changes_something_commits(driver: SessionDriver) -> None:
    answered(driver)
    for played in (400, 400):
        driver.send(AckPlayback(played_ms=played))
    told = [event.event.history_committed for event in driver.of(PlaybackAcknowledged)]
    assert told == [True, False]


@pytest.mark.parametrize("played", [2500, 1e12, math.inf])
def test_nobody_hears_more_than_there_was(driver: SessionDriver, played: float) -> None:
    answered(driver)
    driver.send(AckPlayback(played_ms=played))
    assert (facts(driver).played_ms, facts(driver).committed_ms) == (2400, 2400)


def test_what_counts_may_be_less_than_what_was_played(driver: SessionDriver) -> None:
    answered(driver)
    driver.send(AckPlayback(played_ms=2000, committed_ms=1200))
    assert (facts(driver).played_ms, facts(driver).committed_ms) == (2000, 1200)
    assert heard(driver) == "One two three"


@pytest.mark.parametrize(
    "command",
    [
        AckPlayback(played_ms=-1, event_id="e1"),
        AckPlayback(played_ms=math.nan, event_id="e1"),
        AckPlayback(played_ms=1, committed_ms=-1, event_id="e1"),
        AckPlayback(played_ms=1, committed_ms=math.nan, truncate=True, event_id="e1"),
    ],
)
def test_impossible_positions_are_refused(driver: SessionDriver, command: AckPlayback) -> None:
    answered(driver)
    driver.send(command)
    assert (driver.error().code, driver.error().event_id) == ("bad_event", "e1")
    assert driver.kinds() == ["ErrorEvent"]
    assert heard(driver) is None


def test_the_newest_answer_is_meant_when_none_is_named(driver: SessionDriver) -> None:
    answered(driver)
    driver.user_turn("More")
    driver.answers((100, "More."))
    driver.send(AckPlayback(played_ms=50))
    assert facts(driver).item_id == "item_resp_2"


@pytest.mark.parametrize(
    ("command", "code", "param"),
    [
        (
            AckPlayback(played_ms=1, response_id="resp_9"),
            "playback_item_not_found",
            "response_id",
        ),
        (AckPlayback(played_ms=1, item_id="item_1"), "playback_item_not_found", "item_id"),
        (
            AckPlayback(played_ms=1, response_id="resp_1", item_id="item_resp_2"),
            "playback_item_mismatch",
            "item_id",
        ),
    ],
)
def test_acknowledgements_of_what_is_not_there_are_refused_by_what_named_it(
    driver: SessionDriver, command: AckPlayback, code: str, param: str
) -> None:
    answered(driver)
    driver.send(command)
    assert (driver.error().code, driver.error().param) == (code, param)


def test_an_acknowledgement_before_any_answer_is_refused(driver: SessionDriver) -> None:
    driver.send(AckPlayback(played_ms=0))
    assert driver.error().code == "playback_item_not_found"


def test_b19_a_late_acknowledgement_moves_nothing(driver: SessionDriver) -> None:
    answered(driver)
    driver.user_turn("Next")
    driver.send(AckPlayback(played_ms=2400, response_id="resp_1"))
    assert driver.last(PlaybackAcknowledged).event.item_id == "item_resp_1"
    driver.answers((100, "Yes."))
    driver.send(AckPlayback(played_ms=100))
    driver.user_turn("And")
    assert [role for role, _ in driver.said] == ["user", "assistant", "user", "assistant", "user"]


# Who never acknowledges


def test_an_answer_that_was_not_interrupted_counts_as_heard(driver: SessionDriver) -> None:
    answered(driver)
    driver.passes(2400)
    assert heard(driver) == WORDS


def test_an_interrupted_one_counts_as_far_as_a_player_without_pauses_came(
    driver: SessionDriver,
) -> None:
    answered(driver)
    driver.passes(1200)
    assert heard(driver) == "One two three"


def test_the_player_waits_where_the_model_was_late(driver: SessionDriver) -> None:
    driver.user_turn("Count")
    driver.model_audio(400, "One two ")
    driver.passes(5000)
    driver.model_audio(400, "three four.")
    driver.passes(200)
    driver.send(CancelResponse())
    assert heard(driver) == "One two three"


def test_ack_only_keeps_nothing_that_was_not_acknowledged(open_session: OpenSession) -> None:
    driver = answered(open_session(ACK_ONLY))
    driver.passes(10_000)
    assert heard(driver) is None


def test_ack_only_keeps_the_acknowledged_part(open_session: OpenSession) -> None:
    driver = answered(open_session(ACK_ONLY))
    driver.send(AckPlayback(played_ms=1200))
    assert heard(driver) == "One two three"


def test_a_partial_acknowledgement_counts_under_either_policy(driver: SessionDriver) -> None:
    answered(driver)
    driver.send(AckPlayback(played_ms=1200))
    assert heard(driver) == "One two three"


def test_who_acknowledges_is_believed_about_silence_too(driver: SessionDriver) -> None:
    answered(driver)
    driver.send(AckPlayback(played_ms=2400))
    driver.user_turn("More")
    driver.answers((2400, WORDS))
    driver.passes(1200)
    driver.user_turn("Stop")
    assert [text for role, text in driver.said if role == "assistant"] == [WORDS]

    driver.send(AckPlayback(played_ms=800, response_id="resp_2"))
    driver.send(CancelResponse())
    driver.user_turn("Well?")
    assert [text for role, text in driver.said if role == "assistant"] == [WORDS, "One two"]


def test_the_policy_can_change(driver: SessionDriver) -> None:
    answered(driver)
    driver.passes(5000)
    patch = SessionPatch(extra_body={"playback_commit_policy": "ack_only"})
    driver.send(UpdateSession(session=patch))
    assert heard(driver) is None


# Truncation


def test_b16_any_position_cuts_or_is_refused_and_the_next_turn_speaks(
    driver: SessionDriver,
) -> None:
    answered(driver)
    for position in (2485.0, 2400.0, 1e12):
        driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=position))
        event = driver.last(ItemTruncated)
        assert event.audio_end_ms == 2400
        assert event.event
        assert event.event.truncated is False
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=-1, event_id="e1"))
    assert (driver.error().code, driver.error().param) == ("bad_event", "audio_end_ms")
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=0))
    assert driver.last(ItemTruncated).audio_end_ms == 0
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=1e12))

    assert heard(driver) is None
    driver.answers((100, "Still here."))
    assert driver.last(ResponseDone).response.status == "completed"


def test_a_truncation_is_told_and_acknowledged(driver: SessionDriver) -> None:
    answered(driver)
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=1200.7))

    assert driver.kinds() == ["ItemTruncated", "PlaybackAcknowledged", "OutputStopped"]
    assert driver.last(ItemTruncated).audio_end_ms == 1200
    assert (facts(driver).truncate, facts(driver).committed_ms) == (True, 1200)
    assert heard(driver) == "One two three"


def test_an_answer_in_writing_has_no_audio_to_truncate(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    by_hand.model_text("Written.")
    by_hand.model_ends()
    by_hand.send(TruncateItem(item_id="item_resp_1", audio_end_ms=100, event_id="e1"))

    error = by_hand.error()
    assert (error.code, error.param, error.event_id) == ("bad_event", "content_index", "e1")


def test_a_cut_is_for_good(driver: SessionDriver) -> None:
    answered(driver)
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=1200))
    driver.send(AckPlayback(played_ms=2400))
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=2000))

    assert (facts(driver).played_ms, facts(driver).committed_ms) == (1200, 1200)
    assert heard(driver) == "One two three"


def test_an_acknowledgement_can_truncate(driver: SessionDriver) -> None:
    answered(driver)
    driver.send(AckPlayback(played_ms=1200, truncate=True))
    driver.send(AckPlayback(played_ms=2400))
    assert facts(driver).committed_ms == 1200
    driver.send(RetrieveItem(item_id="item_resp_1"))
    content = driver.last(ItemRetrieved).item.content
    assert content
    assert content[0].transcript == "One two three"


def test_an_answer_under_way_keeps_the_cut_it_got(driver: SessionDriver) -> None:
    driver.user_turn("Count")
    driver.model_audio(1200, "One two three ")
    driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=600))
    driver.model_audio(1200, "four five six.")
    driver.model_ends()

    (item,) = driver.last(ResponseDone).response.output
    assert item.content
    assert item.content[0].transcript == "One two"
    assert heard(driver) == "One two"


@pytest.mark.parametrize(
    ("command", "code", "param"),
    [
        (TruncateItem(item_id="item_1", audio_end_ms=1), "bad_event", "item_id"),
        (TruncateItem(item_id="item_9", audio_end_ms=1), "item_not_found", "item_id"),
        (TruncateItem(item_id="", audio_end_ms=1), "missing_item_id", "item_id"),
        (
            TruncateItem(item_id="item_resp_1", audio_end_ms=1, content_index=1),
            "bad_event",
            "content_index",
        ),
        (TruncateItem(item_id="item_resp_1", audio_end_ms=math.nan), "bad_event", "audio_end_ms"),
    ],
)
def test_what_cannot_be_cut_is_refused_by_name(
    driver: SessionDriver, command: TruncateItem, code: str, param: str
) -> None:
    answered(driver)
    driver.send(msgspec.structs.replace(command, event_id="e1"))
    error = driver.error()
    assert (error.code, error.param, error.event_id) == (code, param, "e1")


def test_a_deleted_answer_has_nothing_to_acknowledge(driver: SessionDriver) -> None:
    answered(driver)
    driver.send(DeleteItem(item_id="item_resp_1"))
    driver.send(AckPlayback(played_ms=1, item_id="item_resp_1"))
    assert driver.error().code == "playback_item_not_found"


def test_deleting_a_tool_call_leaves_the_words_beside_it_as_heard(driver: SessionDriver) -> None:
    driver.user_turn("Count")
    driver.model_audio(2400, WORDS)
    driver.model_calls()
    driver.model_ends()
    driver.send(AckPlayback(played_ms=1200))
    driver.send(DeleteItem(item_id="item_2"))
    assert heard(driver) == "One two three"


# Any answer, cut anywhere

LENGTHS_MS = st.sampled_from([20, 200, 480, 1500])
PIECES = st.lists(
    st.tuples(st.sampled_from(["One two ", "and ", "a longer piece of it, ", "end. "]), LENGTHS_MS),
    min_size=1,
    max_size=6,
)


def _text_of(driver: SessionDriver, item_id: str) -> str:
    driver.send(RetrieveItem(item_id=item_id))
    (part,) = driver.last(ItemRetrieved).item.content or ()
    return part.transcript or ""


@settings(max_examples=60)
@given(pieces=PIECES, cut=st.floats(0, 1), by_ack=st.booleans(), finished=st.booleans())
def test_a_cut_leaves_the_words_up_to_there(
    pieces: list[tuple[str, int]], cut: float, by_ack: bool, finished: bool
) -> None:
    """A piece that was heard whole is there whole, one that was not begun is not there."""
    driver = SessionDriver()
    driver.user_turn("Tell me")
    for text, ms in pieces:
        driver.model_audio(ms, text)
    if finished:
        driver.model_ends()
    end_ms = cut * sum(ms for _, ms in pieces)
    if by_ack:
        driver.send(AckPlayback(played_ms=end_ms, truncate=True))
    else:
        driver.send(TruncateItem(item_id="item_resp_1", audio_end_ms=end_ms))
    if not finished:
        driver.user_speaks()

    heard, begun, at_ms = "", "", 0
    for text, ms in pieces:
        begun += text if at_ms < end_ms else ""
        at_ms += ms
        heard += text if at_ms <= end_ms else ""
    text = _text_of(driver, "item_resp_1")
    assert text.startswith(heard.rstrip())
    assert begun.startswith(text)
    assert not text or begun[len(text) :][:1] in ("", " ")
    driver.user_turn_ends("Go on")
    said = [words for role, words in driver.said if role == "assistant"]
    assert said == ([text] if text else [])
