"""The presets have the values of the wire contract, section 12."""

from __future__ import annotations

from omniduplex.clients.minicpmo_4_5 import create_duplex_session_config as minicpmo_4_5
from omniduplex.clients.nemotron_voicechat import (
    create_duplex_session_config as nemotron_voicechat,
)
from omniduplex.clients.personaplex import create_duplex_session_config as personaplex
from omniduplex.protocol.duplex import AudioFormat

TOOL = {"type": "function", "name": "get_weather"}


def test_minicpmo_listens_and_speaks_in_a_given_voice() -> None:
    config = minicpmo_4_5(ref_audio="data:audio/wav;base64,AA==")

    assert config.input_audio == AudioFormat(sample_rate_hz=16000)
    assert config.output_audio == AudioFormat(sample_rate_hz=24000)
    assert config.overlap_policy == "listen_only"
    assert config.playback_commit_policy == "ack_only"
    assert config.ref_audio == "data:audio/wav;base64,AA=="
    assert config.extra_body == {"force_listen_count": 0}


def test_overrides_replace_fields_and_join_the_extra_body() -> None:
    config = minicpmo_4_5(
        temperature=0.6, overlap_policy="adaptive", extra_body={"max_slice_nums": 1}
    )

    assert (config.temperature, config.overlap_policy) == (0.6, "adaptive")
    assert config.extra_body == {"force_listen_count": 0, "max_slice_nums": 1}


def test_personaplex_takes_floats_and_a_persona() -> None:
    config = personaplex(persona="A wise teacher.")

    assert config.input_audio == AudioFormat(encoding="pcm_f32le", sample_rate_hz=24000)
    assert config.output_audio == AudioFormat(sample_rate_hz=24000)
    assert (config.voice, config.instructions) == ("NATF2.pt", "A wise teacher.")


def test_nemotron_has_tools() -> None:
    config = nemotron_voicechat(
        instructions="Be brief.", tools=[TOOL], idle_timeout_s=60, extra_body={"nvc_seed": 1}
    )

    assert config.input_audio == AudioFormat(encoding="pcm_f32le", sample_rate_hz=16000)
    assert config.output_audio == AudioFormat(sample_rate_hz=22050)
    assert (config.instructions, config.idle_timeout_s) == ("Be brief.", 60)
    assert config.extra_body == {"nvc_seed": 1, "realtime_tools": [TOOL]}
    assert nemotron_voicechat().extra_body == {}
