"""What the simulated user can say: four voices that ship with us, and sounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources

import numpy as np

from omniduplex.audio.pcm import int16_to_float32
from omniduplex.audio.resample import StreamResampler
from omniduplex.audio.wav import read_wav
from omniduplex.benchmarks.turns.sounds import NOISES, Samples, at_level, far_away, noise

VOICES = ("slt", "rms", "awb", "kal16")
SPEECH_DBFS = -23.0
"""RMS of every utterance before a cue's own level: the loudness of broadcast speech."""
FAR = frozenset({"side_talk"})
# What is quieter than this at either end of a recording is not speech.
TRIM_DBFS = -50.0
FRAME_S = 0.01
CLIP_NAMES = (
    "question_one",
    "question_two",
    "part_one",
    "part_two",
    "interruption",
    "mm_hm",
    "uh_huh",
    "yeah",
    "okay",
    "right",
    "um",
    "side_talk",
)


def load_clips(voice: str, rate_hz: int, seed: int) -> Mapping[str, Samples]:
    """Everything that one of the voices can say, and all noises, at a rate."""
    clips = {name: _spoken(voice, name, rate_hz) for name in CLIP_NAMES}
    clips |= {name: at_level(noise(name, seed, rate_hz), SPEECH_DBFS) for name in NOISES}
    return clips


def trim(samples: Samples, rate_hz: int) -> Samples:
    """Without the silence before and behind."""
    loud = loud_frames(samples, rate_hz, TRIM_DBFS)
    if not len(loud):
        return samples[:0]
    frame = round(FRAME_S * rate_hz)
    return samples[loud[0] * frame : (loud[-1] + 1) * frame]


def loud_frames(samples: Samples, rate_hz: int, dbfs: float) -> Sequence[int]:
    """The 10 ms frames whose RMS is above a level."""
    frame = round(FRAME_S * rate_hz)
    padded = np.pad(samples, (0, -len(samples) % frame)).reshape(-1, frame)
    power = np.mean(np.square(padded, dtype=np.float64), axis=1)
    found: list[int] = np.flatnonzero(power > 10 ** (dbfs / 10)).tolist()
    return found


def _spoken(voice: str, name: str, rate_hz: int) -> Samples:
    folder = resources.files("omniduplex.benchmarks.turns") / "speech" / voice
    with resources.as_file(folder / f"{name}.wav") as path:
        pcm, recorded_hz = read_wav(path)
    resampled = StreamResampler(recorded_hz, rate_hz).process(pcm, last=True)
    samples = trim(int16_to_float32(resampled), rate_hz)
    if name in FAR:
        samples = far_away(samples, rate_hz)
    return at_level(samples, SPEECH_DBFS)
