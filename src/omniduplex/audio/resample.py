"""Sample rate conversion that keeps phase and filter taps from one chunk to the next."""

import numpy as np
import soxr

from omniduplex.audio.pcm import SAMPLE_BYTES, float32_to_int16, int16_to_float32

SLICE_BYTES = 64 * 1024
"""So much is converted at a time: the floats in between take many times the room of the PCM."""


class StreamResampler:
    """Converts one mono PCM stream from `in_rate` to `out_rate` Hz, chunk by chunk.

    The filter looks ahead, so output trails input by a few tens of ms until `last`.
    """

    def __init__(self, in_rate: int, out_rate: int) -> None:
        # float32 inside: soxr dithers int16 output, which turns digital silence into noise and
        # makes equal input give unequal output.
        self._stream = (
            None
            if in_rate == out_rate
            else soxr.ResampleStream(in_rate, out_rate, 1, dtype=np.float32, quality="HQ")
        )

    def process(self, pcm: bytes, *, last: bool = False) -> bytes:
        """Converted PCM that is ready; `last` adds the tail and starts a new stream.

        Raises ValueError when `pcm` ends inside a sample.
        """
        if len(pcm) % SAMPLE_BYTES:
            raise ValueError("PCM size is not a multiple of the sample size")
        if self._stream is None:
            return pcm
        end = max(0, len(pcm) - 1) // SLICE_BYTES * SLICE_BYTES
        slices = (pcm[at : at + SLICE_BYTES] for at in range(0, end, SLICE_BYTES))
        converted = b"".join(map(self._convert, slices)) + self._convert(pcm[end:], last=last)
        if last:
            self._stream.clear()
        return converted

    def _convert(self, pcm: bytes, last: bool = False) -> bytes:
        assert self._stream is not None
        return float32_to_int16(self._stream.resample_chunk(int16_to_float32(pcm), last=last))

    def reset(self) -> None:
        """Forget all audio still inside."""
        if self._stream is not None:
            self._stream.clear()
