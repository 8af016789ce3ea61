"""Model units: the equal steps of input in which a native duplex model hears and decides."""

from __future__ import annotations

from collections.abc import Sequence

from omniduplex.clients.events import ServerEvent
from omniduplex.protocol.duplex import (
    AudioFormat,
    SessionCreated,
    SessionResumed,
    SessionUpdated,
)

# A camera frame rides the append that closes a unit of this length.
MODEL_UNIT_MS = 1000
_MODEL_INPUT = AudioFormat(sample_rate_hz=16_000)


def chunk_period_ms(events: Sequence[ServerEvent], default: int = MODEL_UNIT_MS) -> int:
    """The model's unit in ms, as the newest event that describes the session has it."""
    for event in reversed(events):
        if isinstance(event, SessionCreated | SessionUpdated | SessionResumed):
            return event.session.capabilities.chunk_period_ms or default
    return default


def duplex_unit_boundary_ms(index: int) -> int:
    """Where the unit of that number, counted from 0, ends, in ms of input."""
    return MODEL_UNIT_MS * (index + 1)


def has_residual_model_unit(pcm16: bytes, *, chunk_period_ms: int) -> bool:
    """Whether mono PCM16 at 16 kHz ends within a unit: the rest waits for more audio."""
    unit = _MODEL_INPUT.byte_count(chunk_period_ms)
    return unit > 0 and len(pcm16) % unit != 0
