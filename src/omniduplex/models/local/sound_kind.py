"""Tells from how an utterance begins whether it takes the floor, assents, or is no word at all.

A linear layer on what the recogniser's encoder makes of the first 400 ms: that knows sounds of
speech from a hum, and `yeah` from `what`, before there is a word to write down. Its weights are
made by `scripts/train_sound_kind.py`, which says from what.
"""

from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE

# It hears from so many frames before the onset, to so many after it: one layer for each moment.
LEAD_FRAMES = 6
MOMENTS = (8, 10, 13)
# As much as the encoder is given, the rest zeros; a position of what it makes of it is 20 ms.
CONTEXT_SAMPLES = VAD_RATE
POSITION_SAMPLES = VAD_RATE // 50
SEGMENTS = 4
WEIGHTS = "sound_kind.npz"


class Kinds(NamedTuple):
    """How likely each is; together they are 1.

    `floor` is speech that wants an answer, or silence; `assent` asks to go on, with words or
    without; `tic` is a hesitation or a noise of the throat.
    """

    floor: float
    assent: float
    tic: float


def samples_to_hear(frames: int) -> int:
    """The length of the audio that is judged `frames` after the onset, in samples."""
    return (LEAD_FRAMES + frames) * FRAME_SAMPLES


def pooled(states: NDArray[np.float32], frames: int) -> NDArray[np.float32]:
    """What is heard after the onset's lead, as the means of four equal parts.

    `states` are [position, width].
    """
    first = LEAD_FRAMES * FRAME_SAMPLES // POSITION_SAMPLES - 3
    last = samples_to_hear(frames) // POSITION_SAMPLES + 2
    parts = np.array_split(states[first:last], SEGMENTS)
    return np.concatenate([part.mean(axis=0) for part in parts])


class SoundKind:
    """The layers; they fit one encoder only, that of Whisper base."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        self._layers = {
            frames: (weights[f"weights_{frames}"], weights[f"bias_{frames}"]) for frames in MOMENTS
        }

    @property
    def width(self) -> int:
        """The width of the encoder that they fit."""
        weights, _ = self._layers[MOMENTS[0]]
        return int(weights.shape[1]) // SEGMENTS

    def kinds(self, states: NDArray[np.float32], frames: int) -> Kinds:
        """Judge an encoder's states of `samples_to_hear(frames)` samples."""
        weights, bias = self._layers[frames]
        scores = weights @ pooled(states, frames) + bias
        likelihoods = np.exp(scores - scores.max())
        return Kinds(*(likelihoods / likelihoods.sum()).tolist())


def load_sound_kind() -> SoundKind:
    """Those that come with the package."""
    with (
        resources.files("omniduplex.models.local").joinpath(WEIGHTS).open("rb") as file,
        np.load(file) as weights,
    ):
        return SoundKind({name: weights[name].astype(np.float32) for name in weights})
