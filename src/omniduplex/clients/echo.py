"""The session that suits `omniduplex/echo`: the model itself decides when to speak."""

from __future__ import annotations

from typing import Any

import msgspec

from omniduplex.clients.config import SessionConfig

_CONFIG = SessionConfig(overlap_policy="listen_only", playback_commit_policy="ack_only")


def create_duplex_session_config(**overrides: Any) -> SessionConfig:
    """The preset, with named fields of `SessionConfig` replaced."""
    return msgspec.structs.replace(_CONFIG, **overrides)
