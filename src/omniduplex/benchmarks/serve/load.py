"""How callers come: so many at a time, or at their own rate, whatever the server makes of it."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable

import msgspec

from omniduplex.clients import Clock

# Closed callers that began together would commit together for ever.
RAMP_S = 2.0


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One load: exactly one of `concurrency` and `rate_per_s` is not None."""

    sessions: int
    """How many sessions there are in all."""
    concurrency: int | None = None
    rate_per_s: float | None = None

    @property
    def name(self) -> str:
        """The load in words."""
        if self.concurrency is not None:
            return f"{self.concurrency} at a time"
        return f"{self.rate_per_s:g}/s"

    @property
    def size(self) -> float:
        """The load as a number: what an axis shows."""
        return float(self.concurrency or self.rate_per_s or 0)


async def hold_load(
    level: Level, call: Callable[[int], Awaitable[None]], clock: Clock, rng: random.Random
) -> None:
    """Make all calls of a level, numbered from 0, and return when the last one is over."""
    if level.concurrency is not None:
        await _hold_closed(level.sessions, level.concurrency, call, clock, rng)
    elif level.rate_per_s is not None:
        await _hold_open(level.sessions, level.rate_per_s, call, clock, rng)


def poisson_arrivals(rate_per_s: float, count: int, rng: random.Random) -> list[float]:
    """Seconds from the start, for callers that know nothing of each other."""
    return list(itertools.accumulate(rng.expovariate(rate_per_s) for _ in range(count)))


async def _hold_open(
    sessions: int,
    rate_per_s: float,
    call: Callable[[int], Awaitable[None]],
    clock: Clock,
    rng: random.Random,
) -> None:
    started_at = clock.now()

    async def arrive(number: int, after_s: float) -> None:
        await clock.sleep_until(started_at + after_s)
        await call(number)

    async with asyncio.TaskGroup() as tasks:
        for number, after_s in enumerate(poisson_arrivals(rate_per_s, sessions, rng)):
            tasks.create_task(arrive(number, after_s), name=f"caller {number}")


async def _hold_closed(
    sessions: int,
    concurrency: int,
    call: Callable[[int], Awaitable[None]],
    clock: Clock,
    rng: random.Random,
) -> None:
    started_at = clock.now()
    numbers = iter(range(sessions))

    async def work(after_s: float) -> None:
        await clock.sleep_until(started_at + after_s)
        for number in numbers:
            await call(number)

    async with asyncio.TaskGroup() as tasks:
        for worker in range(min(concurrency, sessions)):
            tasks.create_task(work(rng.uniform(0.0, RAMP_S)), name=f"worker {worker}")
