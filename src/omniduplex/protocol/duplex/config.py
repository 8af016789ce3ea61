"""The session's resolved configuration and what a model can do: the values in force."""

from __future__ import annotations

import enum
from typing import Any, Literal

import msgspec

Encoding = Literal["pcm16", "pcm_f32le", "g711_ulaw", "g711_alaw", "wav"]
OverlapPolicy = Literal["listen_only", "barge_in_on_speech", "adaptive"]
PlaybackCommitPolicy = Literal["ack_only", "commit_all_on_done"]
Modality = Literal["text", "audio"]

DEFAULT_IDLE_TIMEOUT_S = 300.0

# What a WAV of PCM16 has before its samples: RIFF 12, its format 24, the head of its data 8.
WAV_HEADER_BYTES = 44
_SAMPLE_BYTES: dict[Encoding, int] = {
    "pcm16": 2,
    "pcm_f32le": 4,
    "g711_ulaw": 1,
    "g711_alaw": 1,
    "wav": 2,
}

# A stock client expects the name of a voice; this is the API's own default.
DEFAULT_VOICE = "alloy"


class Dialect(enum.Enum):
    """How one connection's events are rendered, and whose defaults hold."""

    OPENAI = "openai"
    BETA = "beta"
    DUPLEX = "duplex"

    @property
    def is_openai(self) -> bool:
        """Whether stock clients of the OpenAI API speak it, of the current one or of its beta."""
        return self is not Dialect.DUPLEX


class AudioFormat(msgspec.Struct, frozen=True):
    """An audio encoding, mono, little-endian, at a rate in Hz.

    In `wav` each piece is a whole file of PCM16, and a piece without samples has no bytes.
    """

    encoding: Encoding = "pcm16"
    sample_rate_hz: int = 16000

    @property
    def bytes_per_sample(self) -> int:
        """Bytes of one mono sample."""
        return _SAMPLE_BYTES[self.encoding]

    def sample_count(self, size: int) -> int:
        """Whole samples in a piece of so many bytes."""
        return self._sample_bytes(size) // self.bytes_per_sample

    def duration_ms(self, size: int) -> float:
        """How long a piece of so many bytes lasts."""
        return self._sample_bytes(size) * 1000.0 / (self.bytes_per_sample * self.sample_rate_hz)

    def byte_count(self, ms: float) -> int:
        """Bytes of a piece that lasts `ms`, to the nearest whole sample."""
        size = round(ms * self.sample_rate_hz / 1000.0) * self.bytes_per_sample
        return size + WAV_HEADER_BYTES if size and self.encoding == "wav" else size

    def _sample_bytes(self, size: int) -> int:
        return max(0, size - WAV_HEADER_BYTES) if self.encoding == "wav" else size


class TurnDetection(msgspec.Struct, frozen=True, kw_only=True):
    """Server-side turn detection in force; all times in ms of audio."""

    type: Literal["server_vad", "semantic_vad"] = "server_vad"
    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    min_speech_duration_ms: int = 96
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True
    idle_timeout_ms: int | None = None


class DuplexSessionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All that a client can set, resolved: every field holds the value in force."""

    model: str
    dialect: Dialect = Dialect.DUPLEX
    modalities: tuple[Modality, ...] = ("audio", "text")
    instructions: str | None = None
    voice: str | None = None
    ref_audio: str | None = None
    input_format: AudioFormat = AudioFormat()
    output_format: AudioFormat = AudioFormat(sample_rate_hz=24000)
    turn_detection: TurnDetection | None = None
    auto_response: bool = False
    temperature: float | None = None
    max_output_tokens: int | None = None
    speed: float | None = None
    idle_timeout_s: float = DEFAULT_IDLE_TIMEOUT_S
    overlap_policy: OverlapPolicy = "listen_only"
    overlap_short_ack_ms: float = 700
    overlap_barge_in_ms: float = 1200
    overlap_silence_rms: float = 0.003
    playback_commit_policy: PlaybackCommitPolicy = "commit_all_on_done"
    initial_user_text: str | None = None
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] = "auto"
    metadata: dict[str, Any] | None = None
    include: tuple[str, ...] | None = None
    prompt: dict[str, Any] | None = None
    tracing: str | dict[str, Any] | None = None
    truncation: str | dict[str, Any] = "auto"
    input_audio_transcription: dict[str, Any] | None = None
    input_audio_noise_reduction: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    extensions: tuple[str, ...] = ()
    extra_body: dict[str, Any] = {}

    @property
    def knows_extensions(self) -> bool:
        """Whether its client knows what is ours: by its dialect, or because it asked for it."""
        return not self.dialect.is_openai or bool(self.extensions)

    @property
    def shown_voice(self) -> str | None:
        """The voice as its client sees it named."""
        return self.voice or (DEFAULT_VOICE if self.dialect.is_openai else None)

    @property
    def decides_turns(self) -> bool:
        """Whether turns end by listening (server VAD, or the model's own ear) or by commits."""
        return self.turn_detection is not None or self.auto_response


class DuplexCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a model and its deployment can do; a client branches on these, not on model names."""

    implementation_level: Literal["model_native_duplex", "turn_based_duplex"] = (
        "model_native_duplex"
    )
    supports_session_adapter: bool = True
    supports_model_native_turn_policy: bool = False
    supports_external_turn_signal: bool = True
    supports_client_commit: bool = True
    supports_barge_in: bool = True
    supports_playback_ack: bool = True
    supports_input_append: bool = False
    supports_replace_latest_chunk: bool = False
    supports_reencode_context: bool = False
    supports_rollback_to_checkpoint: bool = False
    supports_turn_commit_only: bool = False
    supports_kv_lease: bool = False
    supports_core_kv_lease: bool = False
    supports_model_internal_state: bool = False
    supports_stage_resumption: bool = False
    supports_scheduler_native_append: bool = False
    supports_core_resumable_request: bool = False
    supports_concurrent_turn_requests: bool = False
    required_input_modalities: tuple[str, ...] = ("audio",)
    optional_input_modalities: tuple[str, ...] = ()
    supports_stage_connector_handoff: bool = False
    supports_independent_io_streams: bool = False
    supports_realtime_endpoint: bool = True
    supports_multi_session: bool = False
    supports_multi_session_same_replica: bool = False
    supports_session_lease: bool = False
    supports_session_resume: bool = False
    session_admission_mode: str = "engine_managed"
    supports_audio_truncate: bool = False
    supports_image_input: bool = False
    supports_text_only_turn: bool = False
    requires_model_runner_kv: bool = False
    requires_native_stage_role: bool = False
    adapter_patterns: tuple[str, ...] = ("chunk_group_append",)
    signal_sources: tuple[str, ...] = ("client_event", "server_policy", "model_native")
    stage_handoff_transport: str | None = None
    chunk_period_ms: int = 1000
    target_barge_in_latency_ms: int | None = None
    input_modes: tuple[str, ...] = ("append_audio_chunk",)
