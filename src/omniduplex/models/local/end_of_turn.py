"""Tells from the sound of a turn whether the speaker is done with it (smart-turn v3)."""

from pathlib import Path

import numpy as np

from omniduplex.audio.mel import log_mel
from omniduplex.audio.pcm import int16_to_float32
from omniduplex.models.local.onnx_session import open_session

RATE = 16_000
WINDOW_SAMPLES = 8 * RATE  # the model looks at 800 mel frames of 10 ms


class EndOfTurn:
    """A smart-turn classifier; one instance serves all sessions, from any thread."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        self._session = open_session(path, threads)

    def probability(self, pcm16k: bytes) -> float:
        """How likely the turn in this 16 kHz PCM is complete; only its last 8 s count."""
        samples = int16_to_float32(pcm16k)[-WINDOW_SAMPLES:]
        padded = np.pad(samples, (WINDOW_SAMPLES - len(samples), 0))
        features = log_mel(padded, normalize=True)[np.newaxis]
        (probability,) = self._session.run(None, {"input_features": features})
        return float(probability.item())
