"""Session updates as a client sends them, applied to a configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omniduplex.protocol.duplex import (
    Dialect,
    DuplexError,
    DuplexSessionConfig,
    TurnDetection,
    UpdateSession,
    apply_patch,
    decode_command,
    default_config,
)

OPENAI = default_config("m", Dialect.OPENAI)
DUPLEX = default_config("m", Dialect.DUPLEX)


def patched(config: DuplexSessionConfig, **session: Any) -> DuplexSessionConfig:
    """Apply a `session.update` with these fields, by way of the wire."""
    command = decode_command(json.dumps({"type": "session.update", "session": session}))
    assert isinstance(command, UpdateSession)
    return apply_patch(config, command.session)


def refused(config: DuplexSessionConfig, **session: Any) -> DuplexError:
    """Return the refusal of a `session.update` with these fields."""
    with pytest.raises(DuplexError) as refusal:
        patched(config, **session)
    return refusal.value


def detection(config: DuplexSessionConfig) -> TurnDetection:
    """Return the turn detection in force, which there must be."""
    assert config.turn_detection is not None
    return config.turn_detection
