"""What a client asks of its session."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from omniduplex.protocol.duplex import (
    AudioFormat,
    AudioPatch,
    InputAudioPatch,
    Modality,
    OutputAudioPatch,
    OverlapPolicy,
    PlaybackCommitPolicy,
    SessionPatch,
    TurnDetectionPatch,
)


class SessionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A session's shape; None leaves the choice to the server.

    The exception is `turn_detection`: None turns it off. What only one model understands rides in
    `extra_body`.
    """

    modalities: tuple[Modality, ...] = ("audio", "text")
    input_audio: AudioFormat = AudioFormat()
    output_audio: AudioFormat = AudioFormat(sample_rate_hz=24000)
    instructions: str | None = None
    ref_audio: str | None = None
    voice: str | None = None
    auto_response: bool = True
    temperature: float | None = None
    overlap_policy: OverlapPolicy | None = None
    playback_commit_policy: PlaybackCommitPolicy | None = None
    turn_detection: TurnDetectionPatch | None = None
    idle_timeout_s: float | None = None
    extra_body: dict[str, Any] = {}

    def to_session_payload(self, *, model: str) -> SessionPatch:
        """The session object that opens a session of `model`."""
        return SessionPatch(
            model=model,
            modalities=self.modalities,
            input_audio_format=self.input_audio.encoding,
            output_audio_format=self.output_audio.encoding,
            sample_rate_hz=self.input_audio.sample_rate_hz,
            audio=AudioPatch(
                input=InputAudioPatch(sample_rate_hz=self.input_audio.sample_rate_hz),
                output=OutputAudioPatch(sample_rate_hz=self.output_audio.sample_rate_hz),
            ),
            turn_detection=self.turn_detection,
            instructions=UNSET if self.instructions is None else self.instructions,
            ref_audio=UNSET if self.ref_audio is None else self.ref_audio,
            voice=UNSET if self.voice is None else self.voice,
            temperature=UNSET if self.temperature is None else self.temperature,
            overlap_policy=UNSET if self.overlap_policy is None else self.overlap_policy,
            playback_commit_policy=(
                UNSET if self.playback_commit_policy is None else self.playback_commit_policy
            ),
            idle_timeout_s=UNSET if self.idle_timeout_s is None else self.idle_timeout_s,
            extra_body={"auto_response": self.auto_response, **self.extra_body},
        )
