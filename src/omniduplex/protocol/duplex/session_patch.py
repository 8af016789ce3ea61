"""What a client may set: UNSET is absent (keep), None is null (clear)."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

T = TypeVar("T")


class FormatPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A GA format object; `rate`, `sample_rate_hz` and `sample_rate` (Hz) say the same."""

    type: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    rate: float | UnsetType = UNSET
    sample_rate_hz: float | UnsetType = UNSET
    sample_rate: float | UnsetType = UNSET


class TurnDetectionPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of turn detection, null being the default of its type; times in ms."""

    type: str | None | UnsetType = UNSET
    threshold: float | None | UnsetType = UNSET
    prefix_padding_ms: float | None | UnsetType = UNSET
    silence_duration_ms: float | None | UnsetType = UNSET
    min_speech_duration_ms: float | None | UnsetType = UNSET
    eagerness: str | None | UnsetType = UNSET
    create_response: bool | None | UnsetType = UNSET
    interrupt_response: bool | None | UnsetType = UNSET
    idle_timeout_ms: float | None | UnsetType = UNSET


class InputAudioPatch(msgspec.Struct, frozen=True, kw_only=True):
    """`session.audio.input` as a client sends it."""

    format: str | FormatPatch | UnsetType = UNSET
    sample_rate_hz: float | UnsetType = UNSET
    turn_detection: TurnDetectionPatch | bool | None | UnsetType = UNSET
    transcription: dict[str, Any] | None | UnsetType = UNSET
    noise_reduction: dict[str, Any] | None | UnsetType = UNSET


class OutputAudioPatch(msgspec.Struct, frozen=True, kw_only=True):
    """`session.audio.output` as a client sends it."""

    format: str | FormatPatch | UnsetType = UNSET
    sample_rate_hz: float | UnsetType = UNSET
    voice: str | dict[str, Any] | None | UnsetType = UNSET
    speed: float | None | UnsetType = UNSET


class AudioPatch(msgspec.Struct, frozen=True, kw_only=True):
    """`session.audio` as a client sends it."""

    input: InputAudioPatch | UnsetType = UNSET
    output: OutputAudioPatch | UnsetType = UNSET


class SessionPatch(msgspec.Struct, frozen=True, kw_only=True):
    """The session object of a client: GA nested and flat beta fields, and our extensions."""

    type: str | UnsetType = UNSET
    model: str | None | UnsetType = UNSET
    modalities: tuple[str, ...] | None | UnsetType = UNSET
    output_modalities: tuple[str, ...] | None | UnsetType = UNSET
    instructions: str | None | UnsetType = UNSET
    voice: str | dict[str, Any] | None | UnsetType = UNSET
    ref_audio: str | None | UnsetType = UNSET
    input_audio_format: str | FormatPatch | UnsetType = UNSET
    output_audio_format: str | FormatPatch | UnsetType = UNSET
    response_format: str | UnsetType = UNSET
    sample_rate_hz: float | UnsetType = UNSET
    sample_rate: float | UnsetType = UNSET
    audio: AudioPatch | UnsetType = UNSET
    turn_detection: TurnDetectionPatch | bool | None | UnsetType = UNSET
    input_audio_transcription: dict[str, Any] | None | UnsetType = UNSET
    input_audio_noise_reduction: dict[str, Any] | None | UnsetType = UNSET
    temperature: float | None | UnsetType = UNSET
    max_output_tokens: int | str | None | UnsetType = UNSET
    max_response_output_tokens: int | str | None | UnsetType = UNSET
    max_tokens: int | str | None | UnsetType = UNSET
    speed: float | None | UnsetType = UNSET
    idle_timeout_s: float | None | UnsetType = UNSET
    overlap_policy: str | None | UnsetType = UNSET
    overlap_short_ack_ms: float | None | UnsetType = UNSET
    overlap_barge_in_ms: float | None | UnsetType = UNSET
    overlap_silence_rms: float | None | UnsetType = UNSET
    playback_commit_policy: str | None | UnsetType = UNSET
    initial_user_text: str | None | UnsetType = UNSET
    tools: tuple[dict[str, Any], ...] | None | UnsetType = UNSET
    tool_choice: str | dict[str, Any] | None | UnsetType = UNSET
    metadata: dict[str, Any] | None | UnsetType = UNSET
    include: tuple[str, ...] | None | UnsetType = UNSET
    prompt: dict[str, Any] | None | UnsetType = UNSET
    tracing: str | dict[str, Any] | None | UnsetType = UNSET
    truncation: str | dict[str, Any] | None | UnsetType = UNSET
    reasoning: dict[str, Any] | None | UnsetType = UNSET
    parallel_tool_calls: bool | None | UnsetType = UNSET
    extra_body: dict[str, Any] | None | UnsetType = UNSET
    extensions: tuple[str, ...] | None | UnsetType = UNSET


def input_patch(patch: SessionPatch) -> InputAudioPatch:
    """Return `audio.input`, an empty one if the client did not send it."""
    nested = UNSET if patch.audio is UNSET else patch.audio.input
    return InputAudioPatch() if nested is UNSET else nested


def output_patch(patch: SessionPatch) -> OutputAudioPatch:
    """Return `audio.output`, an empty one if the client did not send it."""
    nested = UNSET if patch.audio is UNSET else patch.audio.output
    return OutputAudioPatch() if nested is UNSET else nested


def named_voice(patch: SessionPatch) -> tuple[str, str | dict[str, Any] | None | UnsetType]:
    """Return the path under which the client names a voice, and what it names."""
    return first_given(
        ("session.audio.output.voice", output_patch(patch).voice), ("session.voice", patch.voice)
    )


def named_turn_detection(
    patch: SessionPatch,
) -> tuple[str, TurnDetectionPatch | bool | None | UnsetType]:
    """Return the path under which the client sets turn detection, and to what."""
    return first_given(
        ("session.audio.input.turn_detection", input_patch(patch).turn_detection),
        ("session.turn_detection", patch.turn_detection),
    )


def first_given(*candidates: tuple[str, T | UnsetType]) -> tuple[str, T | UnsetType]:
    """Return the first path and value that is there; nested names come before flat ones."""
    return next((one for one in candidates if one[1] is not UNSET), candidates[0])
