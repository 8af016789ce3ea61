"""Time as an input of the client: what it paces, it paces by one of these."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable


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


# How often a condition is looked at, in s: two audio frames of 10 ms.
_LOOK_INTERVAL_S = 0.02


async def wait_for_condition(
    predicate: Callable[[], bool], *, timeout_s: float, label: str, clock: Clock | None = None
) -> None:
    """Return once the predicate holds, as it does of a collector that fills.

    Raises:
        TimeoutError: it did not hold for `timeout_s`; the message has the label.
    """
    clock = clock or MonotonicClock()
    deadline = clock.now() + timeout_s
    while not predicate():
        if clock.now() >= deadline:
            raise TimeoutError(f"no {label} within {timeout_s:g} s")
        await clock.sleep(_LOOK_INTERVAL_S)
