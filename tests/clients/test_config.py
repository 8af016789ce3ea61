from __future__ import annotations

import json

import msgspec
import pytest

from omniduplex.clients import echo, local
from omniduplex.clients.duplex import SessionConfig
from omniduplex.protocol.duplex import (
    AudioFormat,
    Dialect,
    UpdateSession,
    apply_patch,
    default_config,
    encode_command,
)


def on_the_wire(config: SessionConfig) -> object:
    patch = config.to_session_payload(model="m")
    return json.loads(encode_command(UpdateSession(session=patch)))["session"]


def test_the_plain_session_says_what_every_client_says() -> None:
    assert on_the_wire(SessionConfig()) == {
        "model": "m",
        "modalities": ["audio", "text"],
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "sample_rate_hz": 16000,
        "audio": {"input": {"sample_rate_hz": 16000}, "output": {"sample_rate_hz": 24000}},
        "turn_detection": None,
        "extra_body": {"auto_response": True},
    }


def test_whatever_is_set_is_said() -> None:
    config = SessionConfig(
        modalities=("text",),
        input_audio=AudioFormat(encoding="pcm_f32le", sample_rate_hz=24000),
        instructions="Be brief.",
        ref_audio="data:audio/wav;base64,",
        voice="calm",
        auto_response=False,
        temperature=0.0,
        overlap_policy="listen_only",
        playback_commit_policy="ack_only",
        idle_timeout_s=60,
        extra_body={"force_listen_count": 0},
    )

    assert config.to_session_payload(model="m") == msgspec.structs.replace(
        SessionConfig().to_session_payload(model="m"),
        modalities=("text",),
        input_audio_format="pcm_f32le",
        sample_rate_hz=24000,
        audio=config.to_session_payload(model="m").audio,
        instructions="Be brief.",
        ref_audio="data:audio/wav;base64,",
        voice="calm",
        temperature=0.0,
        overlap_policy="listen_only",
        playback_commit_policy="ack_only",
        idle_timeout_s=60,
        extra_body={"auto_response": False, "force_listen_count": 0},
    )


def test_the_local_preset_is_a_session_that_the_server_takes() -> None:
    config = apply_patch(
        default_config("m", Dialect.DUPLEX),
        local.create_duplex_session_config(instructions="Be brief.").to_session_payload(model="m"),
    )

    assert config.turn_detection is not None
    assert config.turn_detection.silence_duration_ms == 500
    assert config.overlap_policy == "barge_in_on_speech"
    assert config.playback_commit_policy == "ack_only"
    assert (config.input_format, config.output_format) == (
        AudioFormat(),
        AudioFormat(sample_rate_hz=24000),
    )
    assert config.instructions == "Be brief."
    assert config.auto_response


def test_the_echo_preset_leaves_turns_to_the_model() -> None:
    config = apply_patch(
        default_config("m", Dialect.DUPLEX),
        echo.create_duplex_session_config(temperature=0.5).to_session_payload(model="m"),
    )

    assert config.turn_detection is None
    assert config.overlap_policy == "listen_only"
    assert config.temperature == 0.5


@pytest.mark.parametrize("preset", [local, echo])
def test_a_preset_knows_no_other_fields(preset: object) -> None:
    with pytest.raises(TypeError):
        preset.create_duplex_session_config(volume=11)  # type: ignore[attr-defined]
