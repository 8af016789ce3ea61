"""The spoken questions of the latency benchmark."""

from __future__ import annotations

import wave
from pathlib import Path

import msgspec
import numpy as np

from omniduplex.audio.pcm import byte_count, int16_to_float32
from omniduplex.audio.resample import StreamResampler
from omniduplex.audio.wav import read_wav
from omniduplex.clients.microphone import RATE_HZ, SAMPLE_BYTES

# Spoken by the embedded voice when there are no recordings.
QUESTION_TEXTS = (
    "What is the capital of France?",
    "How many days are there in a week?",
    "Can you tell me a short joke?",
    "What should I cook for dinner tonight?",
    "Why is the sky blue?",
    "What is the best way to learn a language?",
    "How do I make a cup of tea?",
    "Which planet is closest to the sun?",
    "What is a good name for a small dog?",
    "How long does it take to boil an egg?",
    "Where do penguins live?",
    "What can I do on a rainy day?",
)
SPEECH_RMS = 10 ** (-40 / 20)
FRAME_MS = 10


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Speech at 16 kHz; without `text` nobody can tell how well it was heard."""

    name: str
    pcm: bytes
    text: str | None = None


class QuestionError(Exception):
    """There are no questions to ask."""


def question(name: str, pcm: bytes, rate_hz: int, text: str | None) -> Question:
    """A question from PCM of any rate."""
    speech = StreamResampler(rate_hz, RATE_HZ).process(pcm, last=True)
    return Question(name=name, pcm=speech, text=text)


def load_questions(folder: Path) -> list[Question]:
    """The WAVs of a folder by name; the words of `a.wav`, if known, are in `a.txt`.

    Raises:
        QuestionError: there is no WAV, or one is silent or no WAV of integer PCM.
        OSError: a file cannot be read.
    """
    found = []
    for path in sorted(folder.glob("*.wav")):
        words = path.with_suffix(".txt")
        text = words.read_text("utf-8").strip() if words.exists() else None
        try:
            pcm, rate_hz = read_wav(path)
        except (wave.Error, EOFError) as error:
            raise QuestionError(f"{path} is not a WAV of integer PCM: {error}") from error
        asked = question(path.stem, pcm, rate_hz, text or None)
        if not speech_end(asked.pcm):
            raise QuestionError(f"{path} holds no speech")
        found.append(asked)
    if not found:
        raise QuestionError(f"{folder} holds no *.wav")
    return found


def speech_end(pcm: bytes) -> int:
    """Where speech ends, in samples: behind the last 10 ms frame above -40 dBFS RMS; else 0."""
    frame = byte_count(FRAME_MS, RATE_HZ) // SAMPLE_BYTES
    samples = int16_to_float32(pcm)
    samples = np.pad(samples, (0, -len(samples) % frame))
    power = np.square(samples).reshape(-1, frame).mean(axis=1)
    loud = np.flatnonzero(power > SPEECH_RMS**2)
    return min((int(loud[-1]) + 1) * frame, len(pcm) // SAMPLE_BYTES) if len(loud) else 0
