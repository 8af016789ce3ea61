"""What one frame of speech sounds like, apart from its words: how loud, and how bright."""

import math
from typing import NamedTuple

import numpy as np

from omniduplex.audio.pcm import int16_to_float32
from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE

# Vowels have their first formant below 1 kHz and the others above. Distance and walls take the
# upper ones away; above 4 kHz a narrow microphone has nothing to compare.
LOW_HZ, MIDDLE_HZ, HIGH_HZ = 100, 1000, 4000
QUIETEST = 1e-10  # power at -100 dBFS: digital silence that a detector takes for speech

_HZ = np.fft.rfftfreq(FRAME_SAMPLES, 1 / VAD_RATE)
_DULL = (_HZ >= LOW_HZ) & (_HZ < MIDDLE_HZ)
_BRIGHT = (_HZ >= MIDDLE_HZ) & (_HZ < HIGH_HZ)
_WINDOW = np.hanning(FRAME_SAMPLES).astype(np.float32)


class FrameSound(NamedTuple):
    """Power of a frame (full scale is 1), and of its parts below and above 1 kHz."""

    power: float
    dull: float
    bright: float

    def plus(self, other: "FrameSound") -> "FrameSound":
        """The sums."""
        return FrameSound(
            self.power + other.power, self.dull + other.dull, self.bright + other.bright
        )


SILENT = FrameSound(0.0, 0.0, 0.0)


def frame_sound(pcm: bytes) -> FrameSound:
    """Measure 512 samples of 16 kHz PCM; only the ratio of its two parts has a meaning."""
    samples = int16_to_float32(pcm)
    spectrum = np.square(np.abs(np.fft.rfft(samples * _WINDOW)))
    return FrameSound(
        float(np.mean(np.square(samples))),
        float(spectrum[_DULL].sum()),
        float(spectrum[_BRIGHT].sum()),
    )


def decibels(power: float) -> float:
    """A power, or a ratio of two, in dB; -100 at least."""
    return round(10 * math.log10(max(power, QUIETEST)), 1)
