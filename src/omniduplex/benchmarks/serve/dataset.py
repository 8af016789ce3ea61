"""What the callers ask: recordings, or speech and tones that come with us."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import numpy as np

from omniduplex.audio.pcm import float32_to_int16
from omniduplex.benchmarks.questions import Question, load_questions
from omniduplex.benchmarks.turns.speech import VOICES, load_clips
from omniduplex.clients.microphone import RATE_HZ

TONES = 16
TONE_AMPLITUDE = 0.3
SPOKEN = ("question_one", "question_two")


class Synthetic(StrEnum):
    """Where questions come from when there is no data set."""

    SPEECH = "speech"
    TONE = "tone"


def load_dataset(folder: Path | None, synthetic: Synthetic, seed: int) -> list[Question]:
    """The WAVs of a folder; without one, what is made here, the same for the same seed.

    Raises:
        QuestionError: the folder holds no WAV, or a silent one.
        OSError, wave.Error, EOFError: a file cannot be read.
    """
    if folder is not None:
        return load_questions(folder)
    return _spoken(seed) if synthetic is Synthetic.SPEECH else _tones(seed)


def _spoken(seed: int) -> list[Question]:
    found = []
    for voice in VOICES:
        clips = load_clips(voice, RATE_HZ, seed)
        found += [
            Question(name=f"{voice} {name}", pcm=float32_to_int16(clips[name])) for name in SPOKEN
        ]
    return found


def _tones(seed: int) -> list[Question]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(TONES):
        hz, seconds = 10 * int(rng.integers(20, 100)), 0.1 * int(rng.integers(10, 31))
        time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
        wave = (TONE_AMPLITUDE * np.sin(2 * np.pi * hz * time_s)).astype(np.float32)
        found.append(Question(name=f"{hz} Hz, {seconds:.1f} s", pcm=float32_to_int16(wave)))
    return found
