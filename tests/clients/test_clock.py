from __future__ import annotations

import pytest
from tests.clients.scripted import JumpingClock

from omniduplex.clients.duplex import wait_for_condition

pytestmark = pytest.mark.anyio


async def test_a_condition_that_holds_is_not_waited_for(jumping_clock: JumpingClock) -> None:
    await wait_for_condition(lambda: True, timeout_s=0, label="truth", clock=jumping_clock)

    assert jumping_clock.slept == []


async def test_a_condition_is_waited_for_until_it_holds(jumping_clock: JumpingClock) -> None:
    answers = iter([False, False, True])
    await wait_for_condition(lambda: next(answers), timeout_s=1, label="third", clock=jumping_clock)

    assert len(jumping_clock.slept) == 2


async def test_a_condition_that_never_holds_is_named(jumping_clock: JumpingClock) -> None:
    with pytest.raises(TimeoutError, match=r"no first audio within 0\.5 s"):
        await wait_for_condition(
            lambda: False, timeout_s=0.5, label="first audio", clock=jumping_clock
        )
    assert sum(jumping_clock.slept) == pytest.approx(0.5, abs=0.03)
