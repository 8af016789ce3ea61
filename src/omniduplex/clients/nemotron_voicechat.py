"""The session that Nemotron VoiceChat wants: float audio in, and tools beside the talk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omniduplex.clients.config import SessionConfig
from omniduplex.protocol.duplex import AudioFormat

# The model's own frame: `stream_pcm(pcm, chunk_ms=CHUNK_MS)` sends one with each append.
CHUNK_MS = 80


def create_duplex_session_config(
    *,
    instructions: str | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    idle_timeout_s: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
) -> SessionConfig:
    """The preset; `tools` are function tools of the Realtime API."""
    extras = dict(extra_body or {})
    if tools:
        extras["realtime_tools"] = [dict(tool) for tool in tools]
    return SessionConfig(
        input_audio=AudioFormat(encoding="pcm_f32le", sample_rate_hz=16000),
        output_audio=AudioFormat(sample_rate_hz=22050),
        instructions=instructions,
        idle_timeout_s=idle_timeout_s,
        extra_body=extras,
    )
