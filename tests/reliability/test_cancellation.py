from __future__ import annotations

import asyncio

import pytest
from tests.reliability.cancellation import cancelled_everywhere

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def test_each_suspension_is_cancelled_once_early_and_once_late() -> None:
    seen: list[list[str]] = []

    async def work() -> str:
        steps: list[str] = []
        seen.append(steps)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(settle, future)
        try:
            await future
            steps.append("woken")
            await asyncio.sleep(0)
            steps.append("slept")
        except asyncio.CancelledError:
            steps.append("lost" if future.cancelled() else "cancelled")
            raise
        return "done"

    results = [result async for result in cancelled_everywhere(work)]

    assert results == [None, None, "done"] * 2
    early = [["lost"], ["woken", "cancelled"], ["woken", "slept"]]
    late = [["cancelled"], ["woken", "cancelled"], ["woken", "slept"]]
    assert seen == early + late


async def test_a_timeout_inside_leaves_the_cancel_alone() -> None:
    async def work() -> None:
        async with asyncio.timeout(60):
            await asyncio.sleep(0)

    assert [result async for result in cancelled_everywhere(work)] == [None] * 4


async def test_what_a_cancelled_run_raises_instead_shows() -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            raise ValueError("a cancel was swallowed") from None

    with pytest.raises(ValueError, match="swallowed"):
        async for _ in cancelled_everywhere(work):
            pass
