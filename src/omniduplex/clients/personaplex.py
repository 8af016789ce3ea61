"""The session that PersonaPlex wants: one of its voices, and a persona as its instructions."""

from __future__ import annotations

from typing import Any

from omniduplex.clients.config import SessionConfig
from omniduplex.protocol.duplex import AudioFormat


def create_duplex_session_config(
    *, voice: str = "NATF2.pt", persona: str = "", **overrides: Any
) -> SessionConfig:
    """The preset, with named fields of `SessionConfig` replaced."""
    fields: dict[str, Any] = {
        "input_audio": AudioFormat(encoding="pcm_f32le", sample_rate_hz=24000),
        "output_audio": AudioFormat(sample_rate_hz=24000),
        **overrides,
    }
    return SessionConfig(voice=voice, instructions=persona, **fields)
