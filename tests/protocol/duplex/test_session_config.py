"""What a client's session object does to the configuration in force."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocol.duplex.patching import DUPLEX, OPENAI, detection, patched, refused
from tests.protocol.duplex.strategies import instances

from omniduplex.protocol.duplex import (
    AudioFormat,
    DuplexError,
    DuplexSessionConfig,
    SessionPatch,
    TurnDetection,
    UpdateSession,
    apply_patch,
    encode_command,
    read_max_tokens,
)


def changed(before: DuplexSessionConfig, after: DuplexSessionConfig) -> dict[str, Any]:
    return {
        name: getattr(after, name)
        for name in before.__struct_fields__
        if getattr(after, name) != getattr(before, name)
    }


# Values that any configuration takes, whatever else is patched, and values that none takes.
GOOD: dict[str, list[Any]] = {
    "model": ["other"],
    "instructions": ["Be brief.", None],
    "voice": ["ash", {"id": "marin"}, None],
    "input_audio_format": ["pcm16", "g711_ulaw", {"type": "audio/pcm", "rate": 48000}],
    "output_audio_format": ["pcm16", "g711_alaw"],
    "sample_rate_hz": [16000, 44100],
    "turn_detection": [None, False, {"type": "server_vad"}, {"type": "semantic_vad"}],
    "max_output_tokens": [5, "inf", None],
    "output_modalities": [["audio"], ["text", "audio"], None],
    "temperature": [0, 0.7, None],
    "overlap_policy": ["whatever"],
    "overlap_short_ack_ms": [-3, 10, None],
    "extra_body": [{"a": 1}, {"a": None, "auto_response": True}, None],
    "tools": [[{"type": "function", "name": "f"}], [], None],
}
BAD: dict[str, list[Any]] = {
    "input_audio_format": ["mp3", {"type": "audio/pcm", "rate": 1}],
    "turn_detection": [{"type": "ear"}, {"type": "server_vad", "threshold": 2}],
    "max_output_tokens": [0, "many"],
    "output_modalities": [[], ["video"]],
    "temperature": [-1],
    "extra_body": [{"auto_response": 1}, {"overlap_policy": 7}],
}


def sessions(*pools: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Return session objects with any of the pools' fields, each with one of its values."""
    names = {name for pool in pools for name in pool}
    optional = {
        name: st.sampled_from([value for pool in pools for value in pool.get(name, ())])
        for name in sorted(names)
    }
    return st.fixed_dictionaries({}, optional=optional)


def test_the_openai_dialect_starts_as_the_openai_api_does() -> None:
    assert detection(OPENAI) == TurnDetection(type="server_vad")
    assert (detection(OPENAI).create_response, detection(OPENAI).interrupt_response) == (True, True)
    assert OPENAI.input_format == OPENAI.output_format == AudioFormat(sample_rate_hz=24000)
    assert OPENAI.modalities == ("audio",)
    assert OPENAI.overlap_policy == "barge_in_on_speech"
    assert OPENAI.playback_commit_policy == "commit_all_on_done"
    assert not OPENAI.auto_response


def test_the_duplex_dialect_starts_as_the_duplex_contract_does() -> None:
    assert DUPLEX.turn_detection is None
    assert (DUPLEX.input_format.sample_rate_hz, DUPLEX.output_format.sample_rate_hz) == (
        16000,
        24000,
    )
    assert DUPLEX.modalities == ("audio", "text")
    assert DUPLEX.overlap_policy == "listen_only"
    assert not DUPLEX.auto_response


def test_the_payload_of_the_duplex_client_is_taken() -> None:
    config = patched(
        DUPLEX,
        model="big",
        modalities=["audio", "text"],
        input_audio_format="pcm_f32le",
        output_audio_format="pcm16",
        sample_rate_hz=24000,
        audio={"input": {"sample_rate_hz": 24000}, "output": {"sample_rate_hz": 22050}},
        turn_detection=None,
        overlap_policy="listen_only",
        playback_commit_policy="ack_only",
        extra_body={"auto_response": True, "force_listen_count": 0},
    )
    assert changed(DUPLEX, config) == {
        "model": "big",
        "input_format": AudioFormat(encoding="pcm_f32le", sample_rate_hz=24000),
        "output_format": AudioFormat(sample_rate_hz=22050),
        "playback_commit_policy": "ack_only",
        "auto_response": True,
        "extra_body": {"auto_response": True, "force_listen_count": 0},
    }


# --- the merge ---------------------------------------------------------------------------------


def outcome(
    config: DuplexSessionConfig, session: dict[str, Any]
) -> DuplexSessionConfig | DuplexError:
    """Return the patched configuration or the refusal; anything else fails the test."""
    try:
        return patched(config, **session)
    except DuplexError as error:
        return error


@settings(max_examples=200, deadline=None)
@given(sessions(GOOD, BAD), st.sampled_from([OPENAI, DUPLEX]))
def test_a_patch_is_taken_whole_or_not_at_all(
    session: dict[str, Any], before: DuplexSessionConfig
) -> None:
    picture = msgspec.json.encode(before)
    result = outcome(before, session)

    assert msgspec.json.encode(before) == picture
    if isinstance(result, DuplexError):
        assert result.kind.error_class == "invalid_request_error"
        assert (result.param or "").startswith("session.")
    else:
        assert not any(session.get(name) in values for name, values in BAD.items())


@settings(max_examples=200, deadline=None)
@given(sessions(GOOD), st.sampled_from([OPENAI, DUPLEX]))
def test_the_same_patch_twice_changes_nothing_more(
    session: dict[str, Any], before: DuplexSessionConfig
) -> None:
    once = patched(before, **session)
    assert patched(once, **session) == once
    assert apply_patch(once, SessionPatch()) == once


@settings(max_examples=60, deadline=None)
@given(instances(SessionPatch))
def test_no_patch_at_all_does_anything_but_merge_or_refuse(patch: SessionPatch) -> None:
    with contextlib.suppress(DuplexError):
        msgspec.json.encode(apply_patch(OPENAI, patch))


def test_an_empty_patch_keeps_everything() -> None:
    for config in (OPENAI, DUPLEX):
        assert apply_patch(config, SessionPatch()) == config


FULL: dict[str, Any] = {
    "instructions": "Be brief.",
    "voice": "ash",
    "ref_audio": "data:audio/wav;base64,UklGRg==",
    "initial_user_text": "hello",
    "temperature": 0.5,
    "max_output_tokens": 10,
    "speed": 1.2,
    "idle_timeout_s": 20,
    "tools": [{"type": "function", "name": "f"}],
    "tool_choice": "required",
    "metadata": {"a": "b"},
    "include": ["x"],
    "prompt": {"id": "p"},
    "tracing": "auto",
    "truncation": "disabled",
    "input_audio_transcription": {"model": "whisper-1"},
    "input_audio_noise_reduction": {"type": "near_field"},
    "overlap_short_ack_ms": 1,
    "overlap_barge_in_ms": 2,
    "overlap_silence_rms": 0.5,
    "playback_commit_policy": "ack_only",
    "modalities": ["text"],
    "turn_detection": None,
    "extra_body": {"auto_response": True, "k": 1},
}


@pytest.mark.parametrize("name", sorted(set(FULL) - {"turn_detection"}))
def test_null_clears_one_field_to_its_default_and_only_that(name: str) -> None:
    full = patched(DUPLEX, **FULL)
    cleared = patched(full, **{name: None})

    fields = {"max_output_tokens": ["max_output_tokens"], "extra_body": ["auto_response"]}
    touched = {name, *fields.get(name, [])}
    assert set(changed(full, cleared)) == touched
    assert all(getattr(cleared, field) == getattr(DUPLEX, field) for field in touched)


@pytest.mark.parametrize("name", sorted(FULL))
def test_a_partial_patch_keeps_the_rest(name: str) -> None:
    touched = {name, "auto_response", "overlap_policy"}
    assert set(changed(OPENAI, patched(OPENAI, **{name: FULL[name]}))) <= touched


def test_a_null_key_of_an_object_takes_that_key_away() -> None:
    full = patched(DUPLEX, extra_body={"a": 1, "b": 2}, input_audio_transcription={"model": "x"})
    after = patched(
        full, extra_body={"a": None, "c": 3}, input_audio_transcription={"language": "en"}
    )
    assert after.extra_body == {"b": 2, "c": 3}
    assert after.input_audio_transcription == {"model": "x", "language": "en"}


def test_a_nested_field_wins_over_its_flat_twin() -> None:
    config = patched(
        DUPLEX,
        voice="flat",
        speed=0.5,
        turn_detection=None,
        input_audio_format="g711_alaw",
        input_audio_transcription={"model": "flat"},
        modalities=["text"],
        output_modalities=["audio"],
        audio={
            "input": {
                "format": {"type": "audio/pcm", "rate": 48000},
                "turn_detection": {"type": "semantic_vad"},
                "transcription": {"model": "nested"},
                "noise_reduction": None,
            },
            "output": {"voice": "nested", "speed": 1.5},
        },
    )
    assert (config.voice, config.speed, config.modalities) == ("nested", 1.5, ("audio",))
    assert config.input_format == AudioFormat(sample_rate_hz=48000)
    assert config.input_audio_transcription == {"model": "nested"}
    assert detection(config).type == "semantic_vad"


# --- everything else ---------------------------------------------------------------------------


def test_unknown_policy_names_mean_the_default() -> None:
    config = patched(DUPLEX, overlap_policy="loud", playback_commit_policy="never")
    assert config == DUPLEX
    assert patched(OPENAI, overlap_policy="loud") == OPENAI


def test_extra_body_decides_over_the_top_level() -> None:
    config = patched(
        DUPLEX,
        overlap_short_ack_ms=5,
        playback_commit_policy="ack_only",
        extra_body={"overlap_short_ack_ms": -1, "playback_commit_policy": "commit_all_on_done"},
    )
    assert config.overlap_short_ack_ms == 0
    assert config.playback_commit_policy == "commit_all_on_done"


@pytest.mark.parametrize(
    "extra", [{"overlap_short_ack_ms": True}, {"overlap_policy": 3}, {"auto_response": "yes"}]
)
def test_extra_body_is_typed_where_it_is_ours(extra: dict[str, Any]) -> None:
    error = refused(DUPLEX, extra_body=extra)
    assert (error.code, error.param) == ("bad_event", f"session.extra_body.{next(iter(extra))}")


@pytest.mark.parametrize("seconds", [0, None, -1])
def test_no_idle_timeout_means_five_minutes(seconds: float | None) -> None:
    assert patched(patched(DUPLEX, idle_timeout_s=9), idle_timeout_s=seconds) == DUPLEX


@pytest.mark.parametrize("name", ["max_output_tokens", "max_response_output_tokens", "max_tokens"])
def test_a_limit_of_tokens_has_three_names(name: str) -> None:
    limited = patched(DUPLEX, **{name: 7})
    assert limited.max_output_tokens == 7
    for unlimited in ("inf", "Infinity", "unlimited", None):
        assert patched(limited, **{name: unlimited}).max_output_tokens is None


@pytest.mark.parametrize("tokens", [0, -1, "many", 2**63])
def test_a_limit_of_tokens_is_a_count(tokens: int | str) -> None:
    with pytest.raises(DuplexError) as refusal:
        read_max_tokens(tokens, "response.max_output_tokens")
    assert (refusal.value.code, refusal.value.param) == ("bad_event", "response.max_output_tokens")


@pytest.mark.parametrize(
    ("session", "code", "param"),
    [
        ({"modalities": ["video"]}, "bad_event", "session.modalities"),
        ({"output_modalities": []}, "bad_event", "session.output_modalities"),
        ({"voice": {"name": "x"}}, "bad_event", "session.voice"),
        ({"audio": {"output": {"voice": {"id": 3}}}}, "bad_event", "session.audio.output.voice"),
        ({"speed": 0}, "bad_event", "session.speed"),
        ({"speed": 0.2}, "bad_event", "session.speed"),
        ({"audio": {"output": {"speed": 4.5}}}, "bad_event", "session.audio.output.speed"),
        ({"temperature": -1}, "bad_event", "session.temperature"),
        ({"tool_choice": "maybe"}, "bad_event", "session.tool_choice"),
        ({"type": "transcription"}, "invalid_session_config", "session.type"),
    ],
    ids=str,
)
def test_a_refusal_names_the_field(session: dict[str, Any], code: str, param: str) -> None:
    error = refused(DUPLEX, **session)
    assert (error.code, error.param) == (code, param)


def test_a_voice_may_be_an_object() -> None:
    assert patched(OPENAI, voice={"id": "marin"}).voice == "marin"


def test_what_stock_clients_send_first_is_taken() -> None:
    config = patched(
        OPENAI,
        type="realtime",
        model="gpt-realtime",
        output_modalities=["audio"],
        instructions="Help.",
        max_output_tokens="inf",
        tool_choice="auto",
        tracing=None,
        reasoning={"effort": "low"},
        parallel_tool_calls=True,
        audio={
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "noise_reduction": None,
                "transcription": {"model": "gpt-4o-mini-transcribe"},
                "turn_detection": {
                    "type": "semantic_vad",
                    "eagerness": "medium",
                    "create_response": True,
                    "interrupt_response": True,
                },
            },
            "output": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "speed": 1.0,
                "voice": "marin",
            },
        },
    )
    assert detection(config) == TurnDetection(type="semantic_vad", eagerness="medium")
    assert config.input_format == OPENAI.input_format
    assert config.overlap_policy == "barge_in_on_speech"
    assert encode_command(UpdateSession(session=SessionPatch(tracing=None))).endswith(
        '{"tracing":null}}'
    )
