"""A microphone that never stops: speech when there is some, silence otherwise, in real time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from omniduplex.clients.clock import Clock

RATE_HZ = 16_000
SAMPLE_BYTES = 2
CHUNK_MS = 40
CHUNK_SAMPLES = RATE_HZ * CHUNK_MS // 1000


class Microphone:
    """Sends int16 PCM, a chunk whenever its last sample was spoken; positions are in samples."""

    def __init__(
        self,
        append: Callable[[bytes], Awaitable[object]],
        clock: Clock,
        *,
        rate_hz: int = RATE_HZ,
        chunk_ms: int = CHUNK_MS,
    ) -> None:
        self._append = append
        self._clock = clock
        self._rate_hz = rate_hz
        self._chunk_samples = rate_hz * chunk_ms // 1000
        self._started_at = 0.0
        self._sent_at: list[float] = []
        self._queued = b""
        self._waiting: list[tuple[int, asyncio.Event]] = []

    async def run(self) -> None:
        """Send until cancelled."""
        self._started_at = self._clock.now()
        for count in itertools.count(1):
            await self._clock.sleep_until(self.spoken_at(count * self._chunk_samples))
            size = self._chunk_samples * SAMPLE_BYTES
            chunk, self._queued = self._queued[:size], self._queued[size:]
            self._sent_at.append(self._clock.now())
            await self._append(chunk.ljust(size, b"\0"))
            for position, sent in self._waiting:
                if position <= self.position:
                    sent.set()

    @property
    def position(self) -> int:
        """Where the stream is: samples sent."""
        return len(self._sent_at) * self._chunk_samples

    @property
    def silent(self) -> bool:
        """Whether everything has been said."""
        return not self._queued

    def say(self, pcm: bytes, pause_ms: int = 0) -> int:
        """Queue speech behind a pause and all that is queued; returns where it begins."""
        self._queued += bytes(pause_ms * self._rate_hz // 1000 * SAMPLE_BYTES)
        start = self.position + len(self._queued) // SAMPLE_BYTES
        self._queued += pcm
        return start

    async def until_sent(self, position: int) -> None:
        """Return when everything before this position has been sent."""
        if position <= self.position:
            return
        waiting = (position, asyncio.Event())
        self._waiting.append(waiting)
        await waiting[1].wait()
        self._waiting.remove(waiting)

    def spoken_at(self, position: int) -> float:
        """When the sample before this position left the mouth, on the clock."""
        return self._started_at + position / self._rate_hz

    def sent_at(self, position: int) -> float:
        """When the chunk that completed the stream up to this position was sent.

        Raises:
            ValueError: it has not been sent.
        """
        if not 0 < position <= self.position:
            raise ValueError(f"sample {position} has not been sent")
        return self._sent_at[-(-position // self._chunk_samples) - 1]
