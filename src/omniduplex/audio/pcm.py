"""Sample arithmetic on the house PCM format: int16, little-endian, mono, as `bytes`."""

import math

import numpy as np
from numpy.typing import NDArray

FLOAT32 = np.dtype(np.float32).newbyteorder("<")
INT16 = np.dtype(np.int16).newbyteorder("<")
SAMPLE_BYTES = 2
FULL_SCALE = 32768.0


def int16_to_float32(pcm: bytes) -> NDArray[np.float32]:
    """Samples in [-1, 1); raises ValueError when the bytes end inside a sample."""
    samples = np.frombuffer(pcm, dtype=INT16).astype(np.float32)
    samples *= np.float32(1.0 / FULL_SCALE)
    return samples


def float32_to_int16(samples: NDArray[np.float32]) -> bytes:
    """Nearest int16 of finite samples in [-1, 1]; louder ones are clipped."""
    # Clipped first: the largest floats have no room for another factor.
    scaled: NDArray[np.float32] = np.rint(samples.clip(-1.0, 1.0) * np.float32(FULL_SCALE))
    return np.minimum(scaled, 32767.0).astype(INT16).tobytes()


def decode_f32le(data: bytes) -> NDArray[np.float32]:
    """Little-endian float32 samples from outside, not clipped.

    Raises ValueError when the bytes end inside a sample or a sample is not finite.
    """
    samples = np.frombuffer(data, dtype=FLOAT32)
    if not np.isfinite(samples).all():
        raise ValueError("float32 audio holds a sample that is not finite")
    return samples.astype(np.float32)


def duration_ms(nbytes: int, rate: int) -> float:
    """How long `nbytes` of PCM last at `rate` Hz."""
    return nbytes / SAMPLE_BYTES * 1000.0 / rate


def byte_count(ms: float, rate: int) -> int:
    """Bytes of PCM that last `ms` at `rate` Hz, to the nearest whole sample."""
    return round(ms * rate / 1000.0) * SAMPLE_BYTES


def rms(pcm: bytes) -> float:
    """Root mean square level, 0 (silence, or no sample at all) to 1 (full scale square wave)."""
    if not pcm:
        return 0.0
    samples = np.frombuffer(pcm, dtype=INT16).astype(np.float64)
    return math.sqrt(float(samples.dot(samples)) / len(samples)) / FULL_SCALE
