"""One caller's frames against time: sent every 80 ms, each answered by one."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable

from omniduplex.clients import Clock

FRAME_MS = 80
FRAME_S = FRAME_MS / 1000
APPEND_BYTES = 2560
"""80 ms of 16 kHz PCM16."""
DELTA_BYTES = 3840
"""80 ms of 24 kHz PCM16."""


class Frames:
    """Counts and times the frames of one caller, while `counting`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent_at = 0.0
        self._answered = True
        self.counting = False
        self.appends = 0
        self.pairs = 0
        self.late = 0
        """Answers that came after the next frame had been sent; they have no latency."""
        self.latencies_s: list[float] = []

    async def send_paced(self, send: Callable[[], Awaitable[object]], offset_s: float) -> None:
        """Send a frame every 80 ms, `offset_s` after the beat, until cancelled."""
        started_at = self._clock.now() + offset_s
        for count in itertools.count():
            await self._clock.sleep_until(started_at + count * FRAME_S)
            self._sent_at, self._answered = self._clock.now(), False
            self.appends += self.counting
            await send()

    def received(self) -> None:
        """An answering frame is there."""
        if not self.counting:
            return
        self.pairs += 1
        if self._answered:
            self.late += 1
        else:
            self.latencies_s.append(self._clock.now() - self._sent_at)
            self._answered = True
