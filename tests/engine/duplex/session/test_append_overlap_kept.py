"""What was said over an answer and kept: the next turn, or no more than an acknowledgement."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import (
    BY_HAND,
    MAX_INPUT_BYTES,
    SessionDriver,
    loud,
    quiet,
)
from tests.engine.duplex.session.over_an_answer import answering, facts_of, statuses

from omniduplex.protocol.duplex import (
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    CreateResponse,
    ErrorEvent,
    InputCommit,
    ListenDecision,
    OverlapDecision,
    OverlapMetadata,
    SessionPatch,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
    TruncateItem,
    TurnDetectionPatch,
    UpdateSession,
)

ACK_ONLY = msgspec.structs.replace(BY_HAND, playback_commit_policy="ack_only")
VAD = UpdateSession(session=SessionPatch(turn_detection=TurnDetectionPatch(type="server_vad")))

# Until the answer ends


def test_enough_speech_over_an_answer_is_the_next_turn(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(400)
    by_hand.append(400)
    assert by_hand.model.heard == quiet(800)  # its input clock goes on
    by_hand.model_ends()
    assert by_hand.model.heard == loud(400) * 2

    by_hand.send(InputCommit())
    assert facts_of(by_hand).overlap_deferred is msgspec.UNSET
    by_hand.transcript("item_2", "And then?")
    assert by_hand.said[-1] == ("user", "And then?")


def test_a_little_speech_over_an_answer_is_forgotten_when_it_ends(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(700)
    by_hand.model_ends()
    assert not any(by_hand.model.heard)

    by_hand.commit()
    assert by_hand.error().code == "input_audio_buffer_empty"
    by_hand.append(pcm=quiet(100))
    assert by_hand.model.heard == quiet(100)


def test_who_speaks_on_beyond_the_answer_is_heard_from_the_beginning(
    by_hand: SessionDriver,
) -> None:
    answering(by_hand)
    soft = bytes([1, 0]) * 1600
    by_hand.append(pcm=soft)
    by_hand.append(500)
    by_hand.model_ends()
    by_hand.append(600)
    assert by_hand.model.heard == soft + loud(500) + loud(600)


def test_who_fell_silent_before_the_end_has_only_acknowledged(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(500)
    by_hand.append(pcm=quiet(400))
    by_hand.model_ends()
    by_hand.append(600)
    assert by_hand.model.heard == loud(600)


@pytest.mark.parametrize("ended_by", ["client", "failure"])
def test_an_answer_that_was_stopped_was_not_acknowledged(
    by_hand: SessionDriver, ended_by: str
) -> None:
    answering(by_hand)
    by_hand.append(200)
    if ended_by == "client":
        by_hand.send(CancelResponse())
    else:
        by_hand.model_fails()
    assert by_hand.model.heard == loud(200)


def test_the_speech_over_each_answer_counts_anew(by_hand: SessionDriver) -> None:
    for number in (1, 2):
        answering(by_hand)
        by_hand.append(500)
        assert by_hand.last(OverlapDecision).metadata == OverlapMetadata(
            duration_ms=500,
            overlap_ms=500,
            overlap_speech_ms=500,
            buffer_audio=True,
            defer_runtime_append=True,
        )
        by_hand.model_ends()
        assert len(statuses(by_hand)) == number
    assert not any(by_hand.model.heard)


def test_cleared_input_is_gone_with_what_was_kept(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(900)
    by_hand.send(ClearInput())
    by_hand.model_ends()
    assert not any(by_hand.model.heard)
    by_hand.append(pcm=bytes(MAX_INPUT_BYTES))
    assert by_hand.of(ErrorEvent) == []


def test_what_is_kept_is_bounded(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(pcm=loud(1000))
    by_hand.append(pcm=bytes(MAX_INPUT_BYTES))
    assert by_hand.error().code == "input_backpressure"


def test_an_utterance_that_was_announced_ends_with_its_audio(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.user_speaks()
    by_hand.append(300)
    by_hand.model_ends()

    # At 300 ms on the input clock.
    assert by_hand.last(SpeechStopped).audio_end_ms == 300
    by_hand.append(300, is_speech=False)
    by_hand.commit()
    assert len(by_hand.of(SpeechStopped)) == 1


# The model has heard 800 ms of silence, then what was kept, and then what comes next.
@pytest.mark.parametrize(
    ("words", "told", "sent"),
    [("And then?", (1700, 2500), (900, 1700)), ("Before that", (100, 400), (100, 400))],
)
def test_what_was_kept_moves_only_times_behind_it(
    by_hand: SessionDriver, words: str, told: tuple[int, int], sent: tuple[int, int]
) -> None:
    answering(by_hand)
    by_hand.append(800)
    by_hand.model_ends()
    by_hand.commit()
    by_hand.send(VAD)
    by_hand.append(1000)
    by_hand.user_speaks(told[0])
    by_hand.user_turn_ends(words, told[1])

    assert by_hand.last(SpeechStarted).audio_start_ms == sent[0]
    assert by_hand.last(SpeechStopped).audio_end_ms == sent[1]


@pytest.mark.parametrize("how", ["over it", "after it", "instead of it"])
def test_the_words_that_its_client_knows_stay_with_the_audio(
    by_hand: SessionDriver, how: str
) -> None:
    answering(by_hand)
    by_hand.append(800, transcript="And then")
    by_hand.append(100, transcript="yeah")  # an acknowledgement, and no part of the turn
    by_hand.append(800, transcript="he went home?", force_barge_in=how == "instead of it")
    if how == "after it":
        by_hand.model_ends()
    by_hand.send(InputCommit())

    assert by_hand.last(TranscriptionCompleted).transcript == "And then he went home?"


# By a commit over the answer


@pytest.mark.parametrize("wanted", [True, False])
def test_a_turn_committed_over_an_answer_is_answered_after_it(
    by_hand: SessionDriver, wanted: bool
) -> None:
    answering(by_hand)
    by_hand.append(800)
    by_hand.commit(response_create=wanted)

    facts = facts_of(by_hand)
    assert (facts.overlap_deferred, facts.response_create_deferred) == (True, wanted)
    assert facts.overlap_ack is msgspec.UNSET
    assert by_hand.model.heard == loud(800)
    by_hand.transcript("item_2", "And then?")
    assert by_hand.open_responses == ["resp_1"]
    by_hand.model_ends(key="answer_1")
    assert by_hand.open_responses == (["resp_2"] if wanted else [])


def test_a_short_commit_over_an_answer_acknowledges_it(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(300)
    by_hand.send(InputCommit())

    facts = facts_of(by_hand)
    assert (facts.empty, facts.is_speech, facts.no_response) == (True, False, True)
    assert facts.overlap_ack is True
    assert by_hand.of(ListenDecision) == []
    assert (by_hand.model.heard, by_hand.model.commits) == (b"", [])
    by_hand.model_ends()
    assert by_hand.open_responses == []


def test_an_answer_without_a_sound_so_far_cannot_be_acknowledged(by_hand: SessionDriver) -> None:
    by_hand.says("Think hard")
    by_hand.send(CreateResponse())
    by_hand.append(300)
    by_hand.send(InputCommit())
    assert facts_of(by_hand).overlap_deferred is True
    assert by_hand.model.commits == ["item_2"]


def test_a_turn_begun_before_the_answer_is_a_turn(by_hand: SessionDriver) -> None:
    by_hand.append(100)
    answering(by_hand)
    by_hand.append(100)
    by_hand.send(InputCommit())
    assert facts_of(by_hand).overlap_ack is msgspec.UNSET
    assert by_hand.model.heard == loud(100) + quiet(100) + loud(100)


def test_a_commit_that_declares_silence_drops_what_was_kept(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(900)
    by_hand.commit(is_speech=False)
    by_hand.model_ends()
    assert not any(by_hand.model.heard)
    assert facts_of(by_hand).overlap_ack is msgspec.UNSET


def test_a_cancel_forgets_that_the_turn_wanted_an_answer(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(800)
    by_hand.send(InputCommit())
    by_hand.send(CancelResponse())
    by_hand.transcript("item_2", "Never mind")
    assert by_hand.open_responses == []
    by_hand.send(CreateResponse())
    assert by_hand.said[-1] == ("user", "Never mind")


# While an answer is only played


@pytest.fixture
def playing(open_session: OpenSession) -> SessionDriver:
    """An answer is whole, and its client has not heard it yet."""
    driver = answering(open_session(ACK_ONLY))
    driver.model_ends()
    return driver


@pytest.mark.parametrize("ms", [500, 900])
def test_an_interruption_of_what_only_plays_keeps_all_that_was_said_over_it(
    playing: SessionDriver, ms: int
) -> None:
    first, second = loud(ms), loud(300)[::-1]
    playing.append(pcm=first)
    playing.append(pcm=second, force_barge_in=True)
    assert playing.model.heard == first + second


@pytest.mark.parametrize(
    "stop", [ClearOutputAudio(), TruncateItem(item_id="item_resp_1", audio_end_ms=700)]
)
def test_what_only_played_and_was_stopped_was_not_acknowledged(
    playing: SessionDriver, stop: ClearOutputAudio | TruncateItem
) -> None:
    playing.append(500)
    playing.send(stop)
    assert playing.model.heard == loud(500)


def test_what_was_truncated_at_its_end_was_heard(playing: SessionDriver) -> None:
    playing.append(500)
    playing.send(TruncateItem(item_id="item_resp_1", audio_end_ms=2000))
    assert not any(playing.model.heard)
