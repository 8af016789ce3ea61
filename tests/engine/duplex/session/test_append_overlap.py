"""What a client appends over an answer: wire contract, sections 7.2, 8.1 and 8.2."""

from typing import Any

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
from tests.engine.duplex.session.scripted_model import ScriptedPlugin

from omniduplex.protocol.duplex import (
    AckPlayback,
    CancelResponse,
    ClearInput,
    CommitFacts,
    CreateResponse,
    Dialect,
    ErrorEvent,
    InputCommit,
    InputCommitted,
    ListenDecision,
    OutputCleared,
    OverlapDecision,
    OverlapMetadata,
    ResponseDone,
    ResponseOptions,
    SpeechStopped,
    TranscriptionCompleted,
)

AUTO = msgspec.structs.replace(BY_HAND, auto_response=True)
PHONE = msgspec.structs.replace(BY_HAND, dialect=Dialect.OPENAI)
ACK_ONLY = msgspec.structs.replace(BY_HAND, playback_commit_policy="ack_only")
TO_THE_END = CreateResponse(response=ResponseOptions(interruptible=False))


def answering(driver: SessionDriver, ask: CreateResponse | None = None) -> SessionDriver:
    """The model is in the middle of an answer, of which the client has some sound."""
    driver.says("Tell me a story")
    driver.send(ask or CreateResponse())
    driver.model_audio(2000, "Once upon a time there was a king. ")
    driver.events()
    return driver


def decisions(driver: SessionDriver) -> list[tuple[str, str]]:
    return [(event.action, event.reason) for event in driver.of(OverlapDecision)]


def facts_of(driver: SessionDriver) -> CommitFacts:
    facts = driver.last(InputCommitted).event
    assert isinstance(facts, CommitFacts)
    return facts


def statuses(driver: SessionDriver) -> list[str]:
    return [done.response.status for done in driver.of(ResponseDone)]


# Each append is judged


def test_every_append_over_an_answer_is_judged_and_told(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(400)
    by_hand.append(pcm=quiet(100))
    by_hand.append(400)

    assert by_hand.kinds() == ["OverlapDecision"] * 3
    assert decisions(by_hand) == [
        ("listen", "policy_listen_only"),
        ("drop", "silence_or_noise"),
        ("listen", "policy_listen_only"),
    ]
    decision = by_hand.last(OverlapDecision)
    assert decision.policy == "listen_only"
    assert decision.metadata == OverlapMetadata(
        duration_ms=400,
        overlap_ms=800,
        overlap_speech_ms=800,
        buffer_audio=True,
        defer_runtime_append=True,
    )


def test_nothing_is_judged_while_nobody_answers(by_hand: SessionDriver) -> None:
    by_hand.append(400)
    answering(by_hand).model_ends()
    by_hand.append(400, overlap_action="barge_in")
    by_hand.passes(5000)
    by_hand.append(400, force_barge_in=True)

    # The barge-in cuts what is still played of the answer; the last one finds nothing to stop.
    assert decisions(by_hand) == [("barge_in", "client_overlap_action")]
    assert by_hand.last(OutputCleared).response_id == "resp_1"


def test_the_client_knows_how_long_an_append_is(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(100, duration_ms=250.0)
    metadata = by_hand.last(OverlapDecision).metadata
    assert metadata
    assert (metadata.duration_ms, metadata.overlap_ms) == (250, 250)


@pytest.mark.parametrize(
    ("hints", "reason"),
    [
        ({"is_speech": False}, "silence_or_noise"),
        ({"overlap_action": "ack"}, "client_overlap_action"),
        ({"overlap_action": "drop"}, "client_overlap_action"),
        ({"transcript": "mm-hm"}, "short_ack_transcript"),
    ],
)
def test_what_its_client_says_is_no_turn_leaves_nothing_behind(
    by_hand: SessionDriver, hints: dict[str, Any], reason: str
) -> None:
    answering(by_hand)
    by_hand.append(900, **hints)
    by_hand.model_ends()

    assert by_hand.last(OverlapDecision).reason == reason
    assert not any(by_hand.model.heard)
    by_hand.append(pcm=bytes(MAX_INPUT_BYTES))
    assert by_hand.of(ErrorEvent) == []


def test_a_client_may_force_the_answer_to_go_on(by_hand: SessionDriver) -> None:
    answering(by_hand)
    by_hand.append(900, force_listen=True)
    decision = by_hand.last(OverlapDecision)
    assert (decision.action, decision.reason) == ("listen", "client_force_listen")
    assert decision.metadata
    assert decision.metadata.force_listen is True
    assert by_hand.open_responses == ["resp_1"]


# Interruptions


@pytest.mark.parametrize(
    "hints",
    [
        {"force_barge_in": True},
        {"overlap_action": "barge_in"},
        {"overlap_action": "interrupt"},
        {"overlap_action": "cancel"},
    ],
)
def test_a_declared_interruption_keeps_all_that_was_said_over_the_answer(
    by_hand: SessionDriver, hints: dict[str, Any]
) -> None:
    answering(by_hand)
    first, pause, second = loud(200), quiet(100), loud(300)
    by_hand.append(pcm=first)
    by_hand.append(pcm=pause)
    by_hand.append(pcm=second, **hints)

    done = by_hand.last(ResponseDone).response
    assert done.status_details
    assert (done.status, done.status_details.reason) == ("cancelled", "barge_in")
    metadata = by_hand.last(OverlapDecision).metadata
    assert metadata
    assert metadata.cancel_reason == "barge_in"
    assert metadata.preserve_realtime_input is True
    assert by_hand.model.heard == first + pause + second
    by_hand.commit()
    assert facts_of(by_hand).overlap_deferred is msgspec.UNSET


def test_an_interruption_begins_before_its_onset(by_hand: SessionDriver) -> None:
    """The first consonant is softer than any floor: what was heard right before belongs to it."""
    answering(by_hand)
    soft = [bytes([n, 0]) * 1600 for n in range(6)]  # 100 ms each, each to be told from the others
    for pcm in soft:
        by_hand.append(pcm=pcm)
    onset = loud(100)
    by_hand.append(pcm=onset, force_barge_in=True)
    assert by_hand.model.heard == b"".join(soft[3:]) + onset


def test_an_interruption_that_is_large_is_one_before_it_is_converted(
    by_hand: SessionDriver,
) -> None:
    answering(by_hand)
    by_hand.append(2500, force_barge_in=True)
    assert statuses(by_hand) == ["cancelled"]
    assert not any(by_hand.model.heard)

    by_hand.converted()
    assert by_hand.model.heard == loud(2500)
    assert len(decisions(by_hand)) == 1


@pytest.mark.parametrize(("ms", "speech"), [(900, True), (900, False)])
def test_a_model_that_cannot_be_interrupted_keeps_speech_for_later(ms: int, speech: bool) -> None:
    plugin = ScriptedPlugin()
    plugin.can_barge_in = False
    driver = answering(SessionDriver(BY_HAND, plugin=plugin))
    driver.append(pcm=loud(ms) if speech else quiet(ms), force_barge_in=True)
    assert decisions(driver) == [("listen", "barge_in_unsupported")]

    driver.model_ends()
    assert driver.model.heard == (loud(ms) if speech else quiet(ms))


# What was kept


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


# Commits over an answer


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


def test_an_answer_is_under_way_until_an_acknowledging_client_has_heard_it(
    open_session: OpenSession,
) -> None:
    driver = answering(open_session(ACK_ONLY))
    driver.model_ends()
    driver.append(800)
    assert decisions(driver) == [("listen", "policy_listen_only")]
    assert not any(driver.model.heard)

    driver.send(AckPlayback(played_ms=2000))
    assert driver.model.heard == loud(800)


def test_a_client_that_reports_nothing_any_more_plays_nothing(open_session: OpenSession) -> None:
    driver = answering(open_session(ACK_ONLY))
    driver.model_ends()
    driver.append(800)
    driver.passes(10_000)
    driver.append(100)
    assert driver.model.heard == loud(800) + loud(100)
    assert len(decisions(driver)) == 1


# Whose appends are not judged one by one


def test_stock_clients_know_nothing_of_overlaps(open_session: OpenSession) -> None:
    driver = answering(open_session(PHONE))
    driver.append(200)
    driver.send(InputCommit())
    assert decisions(driver) == []
    assert driver.model.commits == ["item_2"]
    driver.transcript("item_2", "And?")
    driver.model_ends(key="answer_1")
    assert driver.open_responses == ["resp_2"]


def test_a_stock_client_that_asked_for_the_extension_knows_of_them(
    open_session: OpenSession,
) -> None:
    driver = answering(open_session(msgspec.structs.replace(PHONE, extensions=("duplex",))))
    driver.append(200)
    assert decisions(driver) == [("listen", "policy_listen_only")]


def test_where_an_ear_ends_turns_it_hears_silence_for_what_is_to_be_ignored(
    driver: SessionDriver,
) -> None:
    answering(driver)
    driver.append(300)
    driver.append(300, overlap_action="continue_output")
    driver.append(300, force_listen=True)

    assert driver.model.heard == loud(300) + quiet(600)
    assert decisions(driver) == [
        ("listen", "client_overlap_action"),
        ("listen", "client_force_listen"),
    ]
    assert driver.last(OverlapDecision).metadata == OverlapMetadata(
        duration_ms=300,
        overlap_ms=0,
        overlap_speech_ms=0,
        buffer_audio=False,
        defer_runtime_append=False,
        force_listen=True,
    )


def test_an_answer_asked_for_while_the_user_speaks_is_not_stopped_by_that(
    driver: SessionDriver,
) -> None:
    driver.user_speaks()
    answering(driver)
    driver.append(300)
    driver.append(300)

    assert decisions(driver) == [("listen", "server_vad_utterance_active")]
    assert driver.model.heard == loud(600)
    assert driver.open_responses == ["resp_1"]


def test_a_model_that_answers_by_itself_hears_everything(open_session: OpenSession) -> None:
    driver = answering(open_session(AUTO))
    driver.append(300)
    driver.append(300, overlap_action="continue")
    assert decisions(driver) == []
    driver.append(300, force_barge_in=True)
    assert decisions(driver) == [("barge_in", "client_force_barge_in")]
    assert driver.model.heard == loud(900)


def test_a_model_that_answers_by_itself_may_be_interrupted_by_speech(
    open_session: OpenSession,
) -> None:
    config = msgspec.structs.replace(AUTO, overlap_policy="barge_in_on_speech")
    driver = answering(open_session(config))
    driver.append(pcm=quiet(100))
    driver.append(100)
    assert decisions(driver) == [
        ("listen", "auto_response_continuous"),
        ("barge_in", "barge_in_on_speech"),
    ]
    assert driver.model.heard == quiet(100) + loud(100)


def test_the_thresholds_judge_appends_too(open_session: OpenSession) -> None:
    config = msgspec.structs.replace(BY_HAND, overlap_policy="adaptive")
    driver = answering(open_session(config))
    for _ in range(3):
        driver.append(400)
    assert decisions(driver) == [
        ("listen", "short_ack"),
        ("listen", "accumulating_overlap_speech"),
        ("barge_in", "long_overlap_speech"),
    ]
    assert driver.model.heard == loud(400) * 3


# Answers that are said to their end


def test_speech_does_not_stop_an_answer_that_is_said_to_its_end(driver: SessionDriver) -> None:
    answering(driver, TO_THE_END)
    driver.user_turn("Stop, I have a question")

    assert driver.kinds()[:3] == ["SpeechStarted", "OverlapDecision", "SpeechStopped"]
    assert decisions(driver) == [("listen", "response_uninterruptible")]
    assert driver.open_responses == ["resp_1"]
    driver.model_ends(key="answer_1")
    assert statuses(driver) == ["completed"]
    assert driver.open_responses == ["resp_2"]
    assert driver.said[-1] == ("user", "Stop, I have a question")


def test_it_is_played_to_its_end_too(driver: SessionDriver) -> None:
    answering(driver, TO_THE_END).model_ends()
    driver.user_speaks()
    assert driver.of(OutputCleared) == []
    assert decisions(driver) == [("listen", "response_uninterruptible")]


def test_the_next_answer_may_be_interrupted_again(driver: SessionDriver) -> None:
    answering(driver, TO_THE_END).model_ends()
    driver.passes(5000)
    answering(driver)
    driver.user_speaks()
    assert statuses(driver) == ["completed", "cancelled"]


def test_an_append_cannot_force_its_way_in(by_hand: SessionDriver) -> None:
    answering(by_hand, TO_THE_END)
    by_hand.append(900, force_barge_in=True)
    assert decisions(by_hand) == [("listen", "response_uninterruptible")]
    by_hand.model_ends()
    assert by_hand.model.heard == loud(900)


def test_its_client_may_still_cancel_it(by_hand: SessionDriver) -> None:
    answering(by_hand, TO_THE_END)
    by_hand.send(CancelResponse())
    assert statuses(by_hand) == ["cancelled"]
