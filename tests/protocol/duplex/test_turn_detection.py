"""What a client may change about turn detection, and what that means for overlaps."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocol.duplex.patching import DUPLEX, OPENAI, detection, patched, refused

from omniduplex.protocol.duplex import (
    TurnDetection,
)


def test_a_partial_change_of_turn_detection_keeps_type_and_other_fields() -> None:
    before = patched(DUPLEX, turn_detection={"type": "server_vad", "silence_duration_ms": 700})
    after = patched(before, turn_detection={"threshold": 0.8})
    assert detection(after) == TurnDetection(
        type="server_vad", silence_duration_ms=700, threshold=0.8
    )
    refused(after, turn_detection={"threshold": 2})
    assert detection(after).threshold == 0.8


def test_another_type_starts_from_its_own_defaults() -> None:
    tuned = patched(OPENAI, turn_detection={"threshold": 0.9, "create_response": False})
    assert detection(patched(tuned, turn_detection={"type": "semantic_vad"})) == TurnDetection(
        type="semantic_vad"
    )


@pytest.mark.parametrize("off", [None, False])
def test_turn_detection_off_means_listen_only(off: None | bool) -> None:
    for session in ({"turn_detection": off}, {"audio": {"input": {"turn_detection": off}}}):
        config = patched(OPENAI, **session)
        assert (config.turn_detection, config.overlap_policy) == (None, "listen_only")


@pytest.mark.parametrize("kind", ["server_vad", "semantic_vad"])
@pytest.mark.parametrize(
    ("interrupts", "policy"), [(True, "barge_in_on_speech"), (False, "listen_only")]
)
def test_the_overlap_policy_follows_turn_detection(
    kind: str, interrupts: bool, policy: str
) -> None:
    session = {"turn_detection": {"type": kind, "interrupt_response": interrupts}}
    assert patched(DUPLEX, **session).overlap_policy == policy
    assert patched(DUPLEX, **session, overlap_policy=policy).overlap_policy == policy


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"turn_detection": {"type": "ear"}}, "session.turn_detection.type"),
        ({"turn_detection": {"threshold": 0.5}}, "session.turn_detection.type"),
        ({"turn_detection": True}, "session.turn_detection"),
        (
            {"turn_detection": {"type": "server_vad", "threshold": 0.15}},
            "session.turn_detection.threshold",
        ),
        (
            {"turn_detection": {"type": "server_vad", "threshold": 1.1}},
            "session.turn_detection.threshold",
        ),
        (
            {
                "audio": {
                    "input": {"turn_detection": {"type": "server_vad", "prefix_padding_ms": -1}}
                }
            },
            "session.audio.input.turn_detection.prefix_padding_ms",
        ),
        (
            {"turn_detection": {"type": "server_vad", "silence_duration_ms": 1e300}},
            "session.turn_detection.silence_duration_ms",
        ),
        (
            {"turn_detection": {"type": "semantic_vad", "eagerness": "very"}},
            "session.turn_detection.eagerness",
        ),
        (
            {"turn_detection": {"type": "semantic_vad", "threshold": 0.5}},
            "session.turn_detection.threshold",
        ),
        ({"overlap_policy": "barge_in_on_speech"}, "session.overlap_policy"),
        (
            {"extra_body": {"overlap_policy": "barge_in_on_speech"}},
            "session.extra_body.overlap_policy",
        ),
        (
            {"turn_detection": None, "overlap_policy": "barge_in_on_speech"},
            "session.turn_detection",
        ),
        (
            {"turn_detection": {"type": "server_vad"}, "overlap_policy": "listen_only"},
            "session.turn_detection",
        ),
    ],
    ids=str,
)
def test_turn_detection_that_cannot_be(session: dict[str, Any], param: str) -> None:
    error = refused(DUPLEX, **session)
    assert (error.code, error.param) == ("unsupported_turn_detection", param)


def test_the_shortest_speech_has_a_floor_and_null_is_the_default() -> None:
    config = patched(OPENAI, turn_detection={"min_speech_duration_ms": 5, "threshold": 0.9})
    assert detection(config).min_speech_duration_ms == 32
    cleared = patched(config, turn_detection={"threshold": None, "eagerness": None})
    assert detection(cleared).threshold == 0.5
