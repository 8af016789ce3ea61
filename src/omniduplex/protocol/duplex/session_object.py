"""The session object a client sees: the configuration in force and the state of the session."""

from __future__ import annotations

import hashlib

from msgspec import UNSET

from omniduplex.protocol.duplex.config import DuplexCapabilities, DuplexSessionConfig
from omniduplex.protocol.duplex.formats import format_object
from omniduplex.protocol.duplex.session_view import (
    DuplexAudioObject,
    DuplexInputAudioObject,
    DuplexSessionObject,
    PlaybackCursor,
    SessionState,
    TurnState,
)
from omniduplex.protocol.duplex.turn_detection import turn_detection_object
from omniduplex.protocol.realtime.session import OutputAudioObject


def session_object(
    config: DuplexSessionConfig,
    *,
    session_id: str,
    capabilities: DuplexCapabilities,
    state: SessionState,
    turn_state: TurnState,
    epoch: int,
    turn_id: int,
    active_response_id: str | None,
    active_response_turn_id: int | None,
    active_request_id: str | None,
    playback: PlaybackCursor,
) -> DuplexSessionObject:
    """Render a session in full, for `session.created`, `session.updated` and `session.resumed`."""
    tokens = config.max_output_tokens
    return DuplexSessionObject(
        id=session_id,
        model=config.model,
        output_modalities=config.modalities,
        modalities=config.modalities,
        instructions=config.instructions,
        voice=config.voice,
        audio=_audio_object(config),
        input_audio_format=config.input_format.encoding,
        output_audio_format=config.output_format.encoding,
        response_format=config.output_format.encoding,
        turn_detection=turn_detection_object(config.turn_detection),
        input_audio_transcription=config.input_audio_transcription,
        input_audio_noise_reduction=config.input_audio_noise_reduction,
        tools=config.tools,
        tool_choice=config.tool_choice,
        temperature=config.temperature,
        max_tokens=tokens,
        max_output_tokens="inf" if tokens is None else tokens,
        speed=config.speed,
        tracing=config.tracing,
        truncation=config.truncation,
        prompt=config.prompt,
        include=config.include,
        reasoning=UNSET if config.reasoning is None else config.reasoning,
        parallel_tool_calls=(
            UNSET if config.parallel_tool_calls is None else config.parallel_tool_calls
        ),
        extensions=config.extensions,
        metadata=config.metadata,
        idle_timeout_s=config.idle_timeout_s,
        overlap_policy=config.overlap_policy,
        overlap_short_ack_ms=config.overlap_short_ack_ms,
        overlap_barge_in_ms=config.overlap_barge_in_ms,
        overlap_silence_rms=config.overlap_silence_rms,
        playback_commit_policy=config.playback_commit_policy,
        ref_audio_sha256=_digest(config.ref_audio) if config.ref_audio else UNSET,
        state=state,
        turn_state=turn_state,
        epoch=epoch,
        turn_id=turn_id,
        active_request_id=active_request_id,
        active_response_id=active_response_id,
        active_response_turn_id=active_response_turn_id,
        playback=playback,
        capabilities=capabilities,
    )


def _audio_object(config: DuplexSessionConfig) -> DuplexAudioObject:
    return DuplexAudioObject(
        input=DuplexInputAudioObject(
            format=format_object(config.input_format),
            sample_rate_hz=config.input_format.sample_rate_hz,
            turn_detection=turn_detection_object(config.turn_detection),
            transcription=config.input_audio_transcription,
            noise_reduction=config.input_audio_noise_reduction,
        ),
        output=OutputAudioObject(
            format=format_object(config.output_format),
            voice=config.voice,
            speed=1.0 if config.speed is None else config.speed,
        ),
    )


def _digest(text: str) -> str:
    """Return the SHA-256 digest by which a client knows its voice sample again."""
    return hashlib.sha256(text.encode()).hexdigest()
