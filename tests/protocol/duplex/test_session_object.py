"""The session object: what is in force, as the contract's example shows it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCapabilities,
    DuplexSessionConfig,
    DuplexSessionObject,
    PlaybackCursor,
    TurnDetection,
    UpdateSession,
    apply_patch,
    decode_command,
    default_config,
    session_object,
)

GOLDEN = Path(__file__).parents[1] / "golden"


def shown(config: DuplexSessionConfig, **overrides: Any) -> DuplexSessionObject:
    state: dict[str, Any] = {
        "session_id": "duplex-5f2a0c41",
        "capabilities": DuplexCapabilities(),
        "state": "open",
        "turn_state": "idle",
        "epoch": 0,
        "turn_id": 0,
        "active_response_id": None,
        "active_response_turn_id": None,
        "active_request_id": None,
        "playback": PlaybackCursor(),
    }
    return session_object(config, **(state | overrides))


def test_the_contracts_opening_gives_the_contracts_session() -> None:
    command = decode_command((GOLDEN / "client/session.update.json").read_bytes())
    assert isinstance(command, UpdateSession)
    config = apply_patch(default_config("m", Dialect.DUPLEX), command.session)
    capabilities = DuplexCapabilities(
        supports_input_append=True,
        supports_session_resume=True,
        supports_session_lease=True,
        supports_multi_session=True,
        signal_sources=("model_native", "client_event", "server_policy"),
    )
    session = json.loads(msgspec.json.encode(shown(config, capabilities=capabilities)))

    example = json.loads((GOLDEN / "server/session.created.json").read_text())["session"]
    capabilities_shown, audio_shown = example.pop("capabilities"), example.pop("audio")
    assert capabilities_shown.items() <= session["capabilities"].items()
    for side in ("input", "output"):
        assert audio_shown[side].items() <= session["audio"][side].items()
    assert example.items() <= session.items()


def test_a_voice_sample_comes_back_as_its_digest_only() -> None:
    secret = "data:audio/wav;base64,UklGRg=="
    config = DuplexSessionConfig(model="m", ref_audio=secret, extra_body={"private": secret})
    session = shown(config)
    assert session.ref_audio_sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in msgspec.json.encode(session).decode()
    assert shown(DuplexSessionConfig(model="m")).ref_audio_sha256 is msgspec.UNSET


@pytest.mark.parametrize(
    ("detection", "keys"),
    [
        (
            TurnDetection(create_response=False),
            {"threshold", "prefix_padding_ms", "silence_duration_ms", "min_speech_duration_ms"},
        ),
        (TurnDetection(type="semantic_vad"), {"eagerness"}),
    ],
)
def test_turn_detection_is_whole_and_has_the_keys_of_its_type(
    detection: TurnDetection, keys: set[str]
) -> None:
    session = shown(DuplexSessionConfig(model="m", turn_detection=detection))
    turn_detection = session.turn_detection
    assert turn_detection is not None
    assert set(turn_detection) == keys | {"type", "create_response", "interrupt_response"}
    assert turn_detection["create_response"] is detection.create_response
    assert session.audio.input.turn_detection == turn_detection


def test_state_and_limits_are_what_is_in_force() -> None:
    session = shown(
        DuplexSessionConfig(model="m", max_output_tokens=9, speed=1.5, voice="ash"),
        state="closing",
        turn_state="barge_in",
        epoch=3,
        turn_id=2,
        active_response_id="resp_1",
        active_response_turn_id=1,
        active_request_id="req_1",
        playback=PlaybackCursor(played_ms=7),
    )
    assert (session.max_tokens, session.max_output_tokens) == (9, 9)
    assert (session.audio.output.speed, session.audio.output.voice) == (1.5, "ash")
    assert (session.state, session.turn_state, session.epoch, session.turn_id) == (
        "closing",
        "barge_in",
        3,
        2,
    )
    assert (session.active_response_id, session.active_response_turn_id) == ("resp_1", 1)
    assert (session.active_request_id, session.playback.played_ms) == ("req_1", 7)
    assert shown(DuplexSessionConfig(model="m")).max_output_tokens == "inf"
