"""The GA session object of the OpenAI Realtime API, as the server renders it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType


class AudioFormatObject(msgspec.Struct, frozen=True, kw_only=True):
    """`{"type": "audio/pcm", "rate": 24000}`; rate in Hz, absent for G.711."""

    type: str
    rate: int | UnsetType = UNSET


class InputAudioObject(msgspec.Struct, frozen=True, kw_only=True):
    """`session.audio.input`."""

    format: AudioFormatObject
    turn_detection: dict[str, Any] | None = None
    transcription: dict[str, Any] | None = None
    noise_reduction: dict[str, Any] | None = None


class OutputAudioObject(msgspec.Struct, frozen=True, kw_only=True):
    """`session.audio.output`."""

    format: AudioFormatObject
    voice: str | None = None
    speed: float | None = 1.0


class AudioObject(msgspec.Struct, frozen=True, kw_only=True):
    """`session.audio`."""

    input: InputAudioObject
    output: OutputAudioObject


class RealtimeSessionObject(msgspec.Struct, frozen=True, kw_only=True):
    """The whole session, as `session.created` and `session.updated` show it."""

    id: str
    type: Literal["realtime"] = "realtime"
    object: Literal["realtime.session"] = "realtime.session"
    model: str
    output_modalities: tuple[str, ...]
    instructions: str | None
    audio: AudioObject
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] = "auto"
    max_output_tokens: int | Literal["inf"] = "inf"
    tracing: str | dict[str, Any] | None = None
    truncation: str | dict[str, Any] = "auto"
    prompt: dict[str, Any] | None = None
    include: tuple[str, ...] | None = None
    reasoning: dict[str, Any] | UnsetType = UNSET
    parallel_tool_calls: bool | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET
