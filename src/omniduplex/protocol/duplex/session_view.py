"""The session as a client sees it: its state, its playback cursor, its whole object."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType, to_builtins

from omniduplex.protocol.duplex.config import (
    DuplexCapabilities,
    Modality,
    OverlapPolicy,
    PlaybackCommitPolicy,
)
from omniduplex.protocol.realtime.session import (
    AudioObject,
    InputAudioObject,
    RealtimeSessionObject,
)

SessionState = Literal["open", "closing", "closed"]
TurnState = Literal[
    "idle",
    "user_speaking",
    "user_committed",
    "assistant_generating",
    "assistant_playing",
    "barge_in",
]


class PlaybackCursor(msgspec.Struct, frozen=True, kw_only=True):
    """How far a response's audio is made, sent, heard and taken into history, in ms."""

    generated_ms: int = 0
    sent_ms: int = 0
    played_ms: int = 0
    committed_ms: int = 0


class DuplexInputAudioObject(InputAudioObject, frozen=True, kw_only=True):
    """`session.audio.input` with the rate said once more, in Hz."""

    sample_rate_hz: int


class DuplexAudioObject(AudioObject, frozen=True, kw_only=True):
    """`session.audio` of the duplex dialect."""

    input: DuplexInputAudioObject


class DuplexSessionObject(RealtimeSessionObject, frozen=True, kw_only=True):
    """The session in full: GA fields, the flat ones, and the duplex state.

    A voice sample (`ref_audio`) never comes back, only its SHA-256 digest.
    """

    audio: DuplexAudioObject
    state: SessionState = "open"
    turn_state: TurnState = "idle"
    epoch: int = 0
    turn_id: int = 0
    active_request_id: str | None = None
    active_response_id: str | None = None
    active_response_turn_id: int | None = None
    modalities: tuple[Modality, ...]
    voice: str | None = None
    response_format: str
    input_audio_format: str
    output_audio_format: str
    turn_detection: dict[str, Any] | None = None
    input_audio_transcription: dict[str, Any] | None = None
    input_audio_noise_reduction: dict[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    speed: float | None = None
    idle_timeout_s: float
    overlap_policy: OverlapPolicy
    overlap_short_ack_ms: float
    overlap_barge_in_ms: float
    overlap_silence_rms: float
    playback_commit_policy: PlaybackCommitPolicy
    playback: PlaybackCursor = PlaybackCursor()
    metadata: dict[str, Any] | None = None
    ref_audio_sha256: str | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    capabilities: DuplexCapabilities

    def __getitem__(self, name: str) -> Any:
        """A field as the JSON object has it; raises KeyError when it has none of this name."""
        return to_builtins(self)[name]
