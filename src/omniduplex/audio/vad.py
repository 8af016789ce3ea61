"""Speech probability of 32 ms frames by the Silero VAD model (ONNX, version 5 and later)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VAD_RATE = 16000
FRAME_SAMPLES = 512
# Sizes the model's 16 kHz branch fixes: recurrent state, and the end of the frame before.
_STATE_SHAPE = (2, 1, 128)
_CONTEXT_SAMPLES = 64


class VadState:
    """What the model remembers of one audio stream; a fresh one stands for silence before it."""

    __slots__ = ("context", "recurrent")

    def __init__(self) -> None:
        self.recurrent: NDArray[np.float32] = np.zeros(_STATE_SHAPE, dtype=np.float32)
        self.context: NDArray[np.float32] = np.zeros(_CONTEXT_SAMPLES, dtype=np.float32)


class SileroVad:
    """One model for all streams, safe to call from several threads with a state each."""

    def __init__(self, model: Path) -> None:
        """Load the ONNX file; raises ImportError without onnxruntime (the `local` extra)."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(model), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._rate = np.array(VAD_RATE, dtype=np.int64)

    def probability(self, state: VadState, frame: NDArray[np.float32]) -> float:
        """Probability 0 to 1 that `frame` (512 samples at 16 kHz) is speech; moves `state` on."""
        return self.probabilities([state], [frame])[0]

    def probabilities(
        self, states: Sequence[VadState], frames: Sequence[NDArray[np.float32]]
    ) -> list[float]:
        """Probability of one frame of each stream, in one model run; moves every state on.

        Raises ValueError when a frame is not of 512 samples or the two sequences differ in length.
        """
        if not states and not frames:
            return []
        rows = np.empty((len(states), _CONTEXT_SAMPLES + FRAME_SAMPLES), dtype=np.float32)
        for row, state, frame in zip(rows, states, frames, strict=True):
            if frame.shape != (FRAME_SAMPLES,):
                raise ValueError(f"a VAD frame is {FRAME_SAMPLES} samples, got {frame.shape}")
            row[:_CONTEXT_SAMPLES] = state.context
            row[_CONTEXT_SAMPLES:] = frame
        recurrent = np.concatenate([state.recurrent for state in states], axis=1)
        speech, recurrent = self._session.run(
            ["output", "stateN"], {"input": rows, "state": recurrent, "sr": self._rate}
        )
        for index, state in enumerate(states):
            state.recurrent = recurrent[:, index : index + 1]
            state.context = rows[index, -_CONTEXT_SAMPLES:].copy()
        return [float(value) for value in speech[:, 0]]
