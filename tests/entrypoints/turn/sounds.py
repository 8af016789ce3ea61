"""Sounds that the echo model understands: it tells a tone's pitch and length."""

from __future__ import annotations

import numpy as np

from omniduplex.audio.pcm import float32_to_int16
from omniduplex.audio.wav import wav_bytes

MODEL = "omniduplex/echo"


def tone(ms: int, hz: float = 440, rate: int = 24_000) -> bytes:
    """A sine of half full scale."""
    time_s = np.arange(ms * rate // 1000) / rate
    return float32_to_int16((0.5 * np.sin(2 * np.pi * hz * time_s)).astype(np.float32))


def tone_wav(ms: int, hz: float = 440, rate: int = 44_100) -> bytes:
    return wav_bytes(tone(ms, hz, rate), rate)
