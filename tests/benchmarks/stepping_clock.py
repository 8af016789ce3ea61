"""A clock that jumps to the end of every sleep."""

from __future__ import annotations

import asyncio

from omniduplex.clients import Clock


class SteppingClock(Clock):
    """Starts at 100 s; every sleep takes exactly as long as it says, and no time at all."""

    def __init__(self) -> None:
        self._now = 100.0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)
        await asyncio.sleep(0)
