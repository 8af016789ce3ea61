"""How a loudspeaker falls silent when an answer is cut off: at once, or without a click."""

from __future__ import annotations

import math
import struct

import msgspec

from omniduplex.clients.audio import PCM16_BYTES


class PlaybackCut(msgspec.Struct, frozen=True, kw_only=True):
    """Silence after `drain_ms` at the latest, the last `fade_ms` of them fading.

    Raises:
        ValueError: the fade is longer than the drain, or one of them is negative.
    """

    drain_ms: float
    fade_ms: float

    def __post_init__(self) -> None:
        if not 0 <= self.fade_ms <= self.drain_ms:
            raise ValueError(f"a fade of {self.fade_ms:g} ms within {self.drain_ms:g} ms")

    def tail(self, queued: bytes, *, rate_hz: int, position: int = 0) -> bytes:
        """What of queued mono PCM16 may still sound, from `position` in samples on.

        Its last sample is zero: where the sound ends sooner than the drain, it fades sooner.
        """
        start = position * PCM16_BYTES
        count = min(len(queued[start:]) // PCM16_BYTES, int(self.drain_ms * rate_hz / 1000))
        fading = min(count, int(self.fade_ms * rate_hz / 1000))
        kept = queued[start : start + count * PCM16_BYTES]
        steady = (count - fading) * PCM16_BYTES
        return kept[:steady] + _faded(kept[steady:])


def immediate_cut() -> PlaybackCut:
    """Not another sample; a wave that is cut off away from zero clicks."""
    return PlaybackCut(drain_ms=0, fade_ms=0)


def bounded_drain(drain_ms: float = 60, fade_ms: float = 20) -> PlaybackCut:
    """A little more, fading: 40 to 80 ms with 10 to 30 ms of fade sound like a voice that stops."""
    return PlaybackCut(drain_ms=drain_ms, fade_ms=fade_ms)


def _faded(pcm: bytes) -> bytes:
    """The samples under half a period of a raised cosine, which has no corner at either end."""
    count = len(pcm) // PCM16_BYTES
    layout = f"<{count}h"
    samples = struct.unpack(layout, pcm)
    # Truncation towards zero keeps the envelope from rising by a rounding.
    gains = (0.5 + 0.5 * math.cos(math.pi * step / count) for step in range(1, count + 1))
    return struct.pack(layout, *(int(s * gain) for s, gain in zip(samples, gains, strict=True)))
