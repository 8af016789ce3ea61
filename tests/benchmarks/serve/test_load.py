from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.stepping_clock import SteppingClock

from omniduplex.benchmarks.serve.load import RAMP_S, Level, hold_load, poisson_arrivals


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@given(st.floats(0.1, 100), st.integers(0, 50), st.integers())
def test_arrivals_follow_each_other_and_are_the_same_for_a_seed(
    rate: float, count: int, seed: int
) -> None:
    arrivals = poisson_arrivals(rate, count, random.Random(seed))
    assert len(arrivals) == count
    assert arrivals == sorted(arrivals)
    assert arrivals == poisson_arrivals(rate, count, random.Random(seed))


def test_arrivals_have_the_rate_that_was_asked_for() -> None:
    arrivals = poisson_arrivals(5.0, 20_000, random.Random(1))
    assert arrivals[-1] == pytest.approx(4000, rel=0.05)


@pytest.mark.anyio
async def test_a_closed_load_never_has_more_calls_than_callers() -> None:
    clock = SteppingClock()
    running: set[int] = set()
    most, made = 0, []

    async def call(number: int) -> None:
        nonlocal most
        running.add(number)
        most = max(most, len(running))
        await clock.sleep(1.0)
        running.remove(number)
        made.append(number)

    await hold_load(Level(sessions=10, concurrency=3), call, clock, random.Random(1))
    assert sorted(made) == list(range(10))
    assert most == 3


@pytest.mark.anyio
async def test_an_open_load_does_not_wait_for_the_calls_before() -> None:
    clock = SteppingClock()
    started_at = clock.now()
    due = [started_at + at for at in poisson_arrivals(2.0, 6, random.Random(3))]
    begun: list[int] = []
    all_here: list[float] = []

    async def call(number: int) -> None:
        begun.append(number)
        while len(begun) < 6:  # nobody leaves before the last one has come
            await clock.sleep(0.0)
        all_here.append(clock.now())

    await hold_load(Level(sessions=6, rate_per_s=2.0), call, clock, random.Random(3))
    assert sorted(begun) == list(range(6))
    assert len(all_here) == 6
    assert clock.now() >= due[-1]


def test_a_level_has_a_name_and_a_size() -> None:
    closed, opened = Level(sessions=8, concurrency=8), Level(sessions=9, rate_per_s=0.5)
    assert (closed.name, closed.size) == ("8 at a time", 8.0)
    assert (opened.name, opened.size) == ("0.5/s", 0.5)
    assert RAMP_S > 0
