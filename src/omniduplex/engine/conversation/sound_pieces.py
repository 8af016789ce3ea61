"""A model's sound in pieces, each of which fits into a frame that a stock client reads."""

from __future__ import annotations

from collections.abc import Sequence

from omniduplex.audio.pcm import byte_count
from omniduplex.protocol.duplex import AudioFormat

MAX_DELTA_BYTES = 384 * 1024
"""Of audio in one event: 512 KiB as base64, of the 1 MiB that such a client reads at once."""


def sound_pieces(pcm: bytes, rate_hz: int, told_in: AudioFormat) -> Sequence[bytes]:
    """Cut int16 PCM at `rate_hz` into what may be told in one event each; at least one piece.

    Raises:
        ValueError: the rate is 0.
    """
    longest = byte_count(told_in.duration_ms(MAX_DELTA_BYTES), rate_hz)
    return [pcm[at : at + longest] for at in range(0, len(pcm), longest)] or [pcm]
