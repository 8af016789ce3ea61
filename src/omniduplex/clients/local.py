"""The session that suits `omniduplex/local`: the server hears turns, the user may interrupt."""

from __future__ import annotations

from typing import Any

import msgspec

from omniduplex.clients.config import SessionConfig
from omniduplex.protocol.duplex import TurnDetectionPatch

_CONFIG = SessionConfig(
    turn_detection=TurnDetectionPatch(type="server_vad", silence_duration_ms=500),
    overlap_policy="barge_in_on_speech",
    playback_commit_policy="ack_only",
)


def create_duplex_session_config(**overrides: Any) -> SessionConfig:
    """The preset, with named fields of `SessionConfig` replaced."""
    return msgspec.structs.replace(_CONFIG, **overrides)
