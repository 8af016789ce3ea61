"""Every row of the decision table: wire contract, section 8.2."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.engine.duplex.session.overlap_policy import OverlapView, judge
from omniduplex.engine.duplex.session.overlap_table import AppendVerdict, AppendView, judge_append

ROW = AppendView(
    policy="listen_only",
    supports_barge_in=True,
    short_ack_ms=700,
    barge_in_ms=1200,
    duration_ms=100,
    speech=True,
)
NO = {"supports_barge_in": False}
AUTO = {"auto_response": True}
ON_SPEECH = {"policy": "barge_in_on_speech"}
BY_LENGTH = {"policy": "adaptive"}
SILENT = {"speech": False}
LONG = {"duration_ms": 701}


def verdict(**facts: Any) -> AppendVerdict:
    return judge_append(AppendView(**{f: getattr(ROW, f) for f in ROW.__struct_fields__} | facts))


@pytest.mark.parametrize(
    ("facts", "action", "reason", "buffers", "defers", "overlap_ms"),
    [
        # 1: a barge-in is asked for that the model does not have
        (NO | {"force_barge_in": True}, "listen", "barge_in_unsupported", True, True, 100),
        (NO | {"overlap_action": "cancel"}, "listen", "barge_in_unsupported", True, True, 100),
        (
            NO | SILENT | {"force_barge_in": True},
            "listen",
            "barge_in_unsupported",
            False,
            True,
            0,
        ),
        # 2
        ({"overlap_action": "barge_in"}, "barge_in", "client_overlap_action", True, False, 100),
        ({"overlap_action": "interrupt"}, "barge_in", "client_overlap_action", True, False, 100),
        ({"overlap_action": "cancel"}, "barge_in", "client_overlap_action", True, False, 100),
        # 3: only a long `listen` is kept
        (
            LONG | {"overlap_action": "listen", "overlap_ms": 900.0},
            "listen",
            "client_overlap_action",
            True,
            True,
            0,
        ),
        ({"overlap_action": "listen"}, "listen", "client_overlap_action", False, True, 0),
        (
            LONG | SILENT | {"overlap_action": "listen"},
            "listen",
            "client_overlap_action",
            False,
            True,
            0,
        ),
        (LONG | {"overlap_action": "continue"}, "listen", "client_overlap_action", False, True, 0),
        (
            LONG | {"overlap_action": "continue_output"},
            "listen",
            "client_overlap_action",
            False,
            True,
            0,
        ),
        (LONG | {"overlap_action": "ack"}, "listen", "client_overlap_action", False, True, 0),
        # 4
        (
            {"overlap_action": "drop", "overlap_ms": 900.0},
            "drop",
            "client_overlap_action",
            False,
            False,
            0,
        ),
        ({"overlap_action": "ignore"}, "drop", "client_overlap_action", False, False, 0),
        ({"overlap_action": "silence"}, "drop", "client_overlap_action", False, False, 0),
        # 5: also of silence
        ({"force_barge_in": True}, "barge_in", "client_force_barge_in", True, False, 100),
        (SILENT | {"force_barge_in": True}, "barge_in", "client_force_barge_in", True, False, 0),
        # 6
        (
            AUTO | ON_SPEECH | {"onset": True},
            "barge_in",
            "server_vad_speech_started",
            True,
            False,
            100,
        ),
        (AUTO | ON_SPEECH, "barge_in", "barge_in_on_speech", True, False, 100),
        # 7
        (AUTO, "listen", "auto_response_continuous", True, False, 0),
        (AUTO | ON_SPEECH | SILENT, "listen", "auto_response_continuous", True, False, 0),
        (
            AUTO | ON_SPEECH | {"onset": False},
            "listen",
            "auto_response_continuous",
            True,
            False,
            0,
        ),
        # 8
        (
            {"force_listen": True, "overlap_ms": 900.0},
            "listen",
            "client_force_listen",
            True,
            True,
            0,
        ),
        (SILENT | {"force_listen": True}, "listen", "client_force_listen", False, True, 0),
        # 9
        (SILENT | {"vision": True}, "listen", "vision_follow", True, False, 0),
        # 10
        (SILENT | {"overlap_ms": 300.0}, "drop", "silence_or_noise", False, False, 300),
        # 11
        (
            {"transcript": "Yeah, go on.", "overlap_ms": 900.0},
            "listen",
            "short_ack_transcript",
            False,
            True,
            0,
        ),
        ({"transcript": "嗯"}, "listen", "short_ack_transcript", False, True, 0),
        # 12
        ({"overlap_ms": 2000.0}, "listen", "policy_listen_only", True, True, 2100),
        ({"transcript": "No, stop"}, "listen", "policy_listen_only", True, True, 100),
        # 13
        (ON_SPEECH | NO, "listen", "barge_in_unsupported", True, True, 100),
        # 14
        (
            ON_SPEECH | {"onset": False},
            "listen",
            "server_vad_utterance_active",
            True,
            False,
            100,
        ),
        # 15
        (
            ON_SPEECH | {"onset": True},
            "barge_in",
            "server_vad_speech_started",
            True,
            False,
            100,
        ),
        (ON_SPEECH, "barge_in", "policy_barge_in_on_speech", True, False, 100),
        # 16
        (BY_LENGTH | {"overlap_ms": 600.0}, "listen", "short_ack", True, True, 700),
        # 17
        (BY_LENGTH | {"overlap_ms": 1100.0}, "barge_in", "long_overlap_speech", True, False, 1200),
        (
            BY_LENGTH | NO | {"overlap_ms": 1100.0},
            "listen",
            "barge_in_unsupported",
            True,
            True,
            1200,
        ),
        # 18
        (
            BY_LENGTH | {"overlap_ms": 601.0},
            "listen",
            "accumulating_overlap_speech",
            True,
            True,
            701,
        ),
        (
            BY_LENGTH | {"duration_ms": 701.0},
            "listen",
            "accumulating_overlap_speech",
            True,
            True,
            701,
        ),
    ],
)
def test_the_first_row_that_matches_decides(
    facts: dict[str, Any], action: str, reason: str, buffers: bool, defers: bool, overlap_ms: float
) -> None:
    judged = verdict(**facts)

    assert (judged.action, judged.reason) == (action, reason)
    assert (judged.buffers, judged.defers) == (buffers, defers)
    assert judged.overlap_ms == overlap_ms


@pytest.mark.parametrize(
    ("facts", "forced"),
    [
        ({"force_listen": True}, True),
        (ON_SPEECH | {"onset": False}, True),
        (AUTO | {"force_listen": True}, True),
        (AUTO, False),
        ({}, False),
    ],
)
def test_the_model_is_forced_to_listen_where_the_table_says_so(
    facts: dict[str, Any], forced: bool
) -> None:
    assert verdict(**facts).force_listen is forced


views = st.builds(
    AppendView,
    policy=st.sampled_from(["listen_only", "barge_in_on_speech", "adaptive"]),
    supports_barge_in=st.booleans(),
    short_ack_ms=st.just(700.0),
    barge_in_ms=st.just(1200.0),
    duration_ms=st.sampled_from([0.0, 100.0, 800.0, 2000.0]),
    speech=st.booleans(),
    overlap_ms=st.sampled_from([0.0, 100.0, 1500.0]),
    auto_response=st.booleans(),
    interruptible=st.booleans(),
    onset=st.sampled_from([None, True, False]),
    vision=st.booleans(),
    overlap_action=st.sampled_from([None, "barge_in", "ack", "listen", "drop", "dance"]),
    force_barge_in=st.booleans(),
    force_listen=st.booleans(),
    transcript=st.sampled_from([None, "yes", "No wait"]),
)


@given(views)
def test_nothing_interrupts_what_cannot_or_may_not_be_interrupted(view: AppendView) -> None:
    judged = judge_append(view)

    if judged.action == "barge_in":
        assert view.supports_barge_in
        assert view.interruptible
        assert judged.buffers
        assert not judged.defers
    if judged.action == "drop":
        assert not judged.buffers
    assert (judged.reason == "response_uninterruptible") <= (not view.interruptible)
    assert judged.overlap_ms in (0.0, view.overlap_ms, view.overlap_ms + view.duration_ms)


@pytest.mark.parametrize(
    "facts",
    [{"force_barge_in": True}, {"overlap_action": "interrupt"}, ON_SPEECH, AUTO | ON_SPEECH],
)
def test_an_answer_that_may_not_be_interrupted_says_so(facts: dict[str, Any]) -> None:
    judged = verdict(interruptible=False, **facts)
    assert (judged.action, judged.reason) == ("listen", "response_uninterruptible")
    assert (judged.buffers, judged.defers, judged.overlap_ms) == (True, True, 100)


@given(
    policy=st.sampled_from(["listen_only", "barge_in_on_speech", "adaptive"]),
    supports_barge_in=st.booleans(),
    interruptible=st.booleans(),
    onset=st.sampled_from([None, True, False]),
    speech_ms=st.integers(0, 3000),
    barge_in_ms=st.sampled_from([0.0, 500.0, 1200.0]),
    transcript=st.sampled_from([None, "um", "Paris", "No wait", "and then he went"]),
)
def test_speech_is_judged_the_same_whoever_tells_of_it(
    speech_ms: int, transcript: str | None, **facts: Any
) -> None:
    """Rows 12 to 18; only what a client declares, and assent in its words, comes before them."""
    ear = judge(OverlapView(short_ack_ms=700, speech_ms=speech_ms, transcript=transcript, **facts))
    before_ms = speech_ms // 3
    append = verdict(
        duration_ms=speech_ms - before_ms, overlap_ms=before_ms, transcript=transcript, **facts
    )
    assert append.overlap_ms == speech_ms
    assert (append.action, append.reason) == (ear.action, ear.reason)
