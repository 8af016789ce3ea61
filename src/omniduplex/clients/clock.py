"""Time as an input of the client: what it paces, it paces by one of these."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod


class Clock(ABC):
    """Reads time and lets time pass, in seconds."""

    @abstractmethod
    def now(self) -> float:
        """Seconds since some fixed moment; never falls."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Return when that much time has passed; at once when it is not positive."""

    async def sleep_until(self, moment: float) -> None:
        """Return when `now()` has reached `moment`."""
        await self.sleep(moment - self.now())


class MonotonicClock(Clock):
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Seconds of `time.monotonic`."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(max(0.0, seconds))
