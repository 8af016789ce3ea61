"""G.711 companding (ITU-T G.711): mu-law and A-law bytes to and from int16 little-endian PCM.

Both laws split the magnitude into eight segments, each twice as wide as the one below, of sixteen
equal steps. The tables hold that rule for every input, so converting is one look-up per sample.
"""

import numpy as np
from numpy.typing import NDArray

from omniduplex.audio.pcm import INT16

# mu-law works on 14-bit samples whose magnitude is clipped to 8159 and shifted by a bias of 33;
# A-law on 13-bit ones, without bias.
_ULAW_BIAS = 33
_ULAW_CLIP = 8159
# Inverted bits on the line: all for mu-law, every even one for A-law; the sign bit is set for plus.
_ULAW_INVERSION = 0x7F
_ALAW_INVERSION = 0x55
_SIGN = 0x80

# Encode tables are looked up by the bit pattern of a sample, read as uint16.
_PATTERN = np.dtype(np.uint16).newbyteorder("<")
_EVERY_SAMPLE = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32)
_EVERY_CODE = np.arange(256, dtype=np.int32)


def _segment(magnitude: NDArray[np.int32], first_end: int) -> NDArray[np.int32]:
    """Index of the segment holding each magnitude, where segment 0 ends below `first_end`."""
    ends = first_end << np.arange(8)
    return np.searchsorted(ends, magnitude, side="right").astype(np.int32)


def _with_sign(code: NDArray[np.int32], positive: NDArray[np.bool]) -> NDArray[np.uint8]:
    signed: NDArray[np.int32] = np.where(positive, code | _SIGN, code)
    return signed.astype(np.uint8)


def _signed(code: NDArray[np.int32], magnitude: NDArray[np.int32]) -> NDArray[np.int16]:
    samples: NDArray[np.int32] = np.where(code & _SIGN, magnitude, -magnitude)
    return samples.astype(INT16)


def _ulaw_encode_table() -> NDArray[np.uint8]:
    shifted = _EVERY_SAMPLE >> 2
    magnitude: NDArray[np.int32] = np.minimum(np.abs(shifted), _ULAW_CLIP) + _ULAW_BIAS
    # The bias can carry the top magnitude to 8192, one past the last segment: it stays in the last.
    segment = np.minimum(_segment(magnitude, 64), 7)
    step = np.minimum((magnitude >> (segment + 1)) - 16, 15)
    code = ((segment << 4) | step) ^ _ULAW_INVERSION
    return _with_sign(code, shifted >= 0)


def _ulaw_decode_table() -> NDArray[np.int16]:
    code = _EVERY_CODE ^ _ULAW_INVERSION
    segment, step = (code >> 4) & 7, code & 15
    middle = (((2 * step + 33) << segment) - _ULAW_BIAS) << 2
    return _signed(code, middle)


def _alaw_encode_table() -> NDArray[np.uint8]:
    shifted = _EVERY_SAMPLE >> 3
    magnitude = np.where(shifted >= 0, shifted, ~shifted)
    segment = _segment(magnitude, 32)
    # The two lowest segments share one step size.
    step = (magnitude >> np.maximum(segment, 1)) & 15
    code = ((segment << 4) | step) ^ _ALAW_INVERSION
    return _with_sign(code, shifted >= 0)


def _alaw_decode_table() -> NDArray[np.int16]:
    code = _EVERY_CODE ^ _ALAW_INVERSION
    segment, step = (code >> 4) & 7, code & 15
    lead = np.where(segment > 0, 33, 1)
    middle = (2 * step + lead) << (np.maximum(segment, 1) + 2)
    return _signed(code, middle)


_ULAW_ENCODE = _ulaw_encode_table()
_ULAW_DECODE = _ulaw_decode_table()
_ALAW_ENCODE = _alaw_encode_table()
_ALAW_DECODE = _alaw_decode_table()


def decode_ulaw(data: bytes) -> bytes:
    """PCM of mu-law bytes."""
    return _ULAW_DECODE[np.frombuffer(data, dtype=np.uint8)].tobytes()


def encode_ulaw(pcm: bytes) -> bytes:
    """Mu-law bytes of PCM; raises ValueError when the PCM ends inside a sample."""
    return _ULAW_ENCODE[np.frombuffer(pcm, dtype=_PATTERN)].tobytes()


def decode_alaw(data: bytes) -> bytes:
    """PCM of A-law bytes."""
    return _ALAW_DECODE[np.frombuffer(data, dtype=np.uint8)].tobytes()


def encode_alaw(pcm: bytes) -> bytes:
    """A-law bytes of PCM; raises ValueError when the PCM ends inside a sample."""
    return _ALAW_ENCODE[np.frombuffer(pcm, dtype=_PATTERN)].tobytes()
