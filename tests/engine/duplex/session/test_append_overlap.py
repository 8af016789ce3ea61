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
from tests.engine.duplex.session.over_an_answer import answering, decisions, facts_of, statuses
from tests.engine.duplex.session.scripted_model import ScriptedPlugin

from omniduplex.protocol.duplex import (
    AckPlayback,
    Dialect,
    ErrorEvent,
    InputCommit,
    OutputCleared,
    OverlapDecision,
    OverlapMetadata,
    ResponseDone,
)

AUTO = msgspec.structs.replace(BY_HAND, auto_response=True)
PHONE = msgspec.structs.replace(BY_HAND, dialect=Dialect.OPENAI)
ACK_ONLY = msgspec.structs.replace(BY_HAND, playback_commit_policy="ack_only")


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


# How long an answer is under way


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
