"""The user's channel: everything that the microphone picks up, as it is sent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omniduplex.audio.pcm import float32_to_int16
from omniduplex.benchmarks.turns.sounds import Samples, amplitude


class UserTrack:
    """Mixes what is said, a background, and the agent's voice from the loudspeaker."""

    def __init__(self) -> None:
        self._sounds: list[tuple[int, Samples]] = []
        self._background: Samples | None = None
        self._loudspeaker: Callable[[int, int], Samples] | None = None
        self._echo_gain = 0.0
        self._echo_delay = 0
        self.pcm = bytearray()
        self.position = 0
        """The next sample that will be sent."""

    def say(self, samples: Samples, start: int) -> None:
        """Let a sound begin at a sample.

        Raises ValueError when that has been sent.
        """
        if start < self.position:
            raise ValueError(f"sample {start} has been sent")
        self._sounds.append((start, samples))

    def surround(self, samples: Samples) -> None:
        """Repeat a sound under everything."""
        self._background = samples

    def echo(self, loudspeaker: Callable[[int, int], Samples], gain_db: float, delay: int) -> None:
        """Pick up what `loudspeaker(start, count)` plays, `delay` samples later."""
        self._loudspeaker = loudspeaker
        self._echo_gain, self._echo_delay = amplitude(gain_db), delay

    def take(self, count: int) -> bytes:
        """The next samples as PCM16; they are kept as sent."""
        start, end = self.position, self.position + count
        mixed = np.zeros(count, dtype=np.float32)
        for begin, samples in self._sounds:
            first, last = max(begin, start), min(begin + len(samples), end)
            if first < last:
                mixed[first - start : last - start] += samples[first - begin : last - begin]
        if self._background is not None:
            mixed += self._background.take(range(start, end), mode="wrap")
        if self._loudspeaker is not None:
            mixed += np.float32(self._echo_gain) * self._loudspeaker(
                start - self._echo_delay, count
            )
        pcm = float32_to_int16(mixed)
        self.pcm += pcm
        self.position = end
        return pcm
