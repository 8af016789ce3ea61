"""What waits for a stage is counted for whoever gave it, and bounded for each alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.stages.support import Listener, stage
from tests.stages.worker_models import EchoModel, OnceGatedModel

from omniduplex.stages.backlog import Backlog
from omniduplex.stages.errors import StageOverloaded
from omniduplex.stages.factory import create_client
from omniduplex.stages.messages import StageAbort, StageInput

pytestmark = pytest.mark.anyio


async def test_each_backlog_has_a_queue_of_its_own(listener: Listener, fifo: Path) -> None:
    options = {"go": str(fifo)}
    config = stage(OnceGatedModel, worker="thread", max_queue=2, hang_timeout_s=0, options=options)
    client = create_client(config)
    await client.start(listener.on_output, listener.on_dead)
    client.submit(StageInput("busy"))
    assert (await listener.output()).text == "busy"

    flooder, neighbour = Backlog(), Backlog()
    for name in "ab":
        client.submit(StageInput(name, pcm=bytes(100)), flooder)
    with pytest.raises(StageOverloaded, match="2 inputs wait"):
        client.submit(StageInput("c"), flooder)
    client.submit(StageInput("n", pcm=bytes(10)), neighbour)
    client.submit(StageInput("turn"))
    assert (flooder.inputs, flooder.pcm_bytes, flooder.most) == (2, 200, 2)
    assert (neighbour.inputs, neighbour.pcm_bytes) == (1, 10)

    stopped = asyncio.ensure_future(client.stop())
    await asyncio.sleep(0)  # it is told so before the worker may go on and take what waits
    await asyncio.to_thread(fifo.write_text, "go")
    await stopped
    assert (flooder.inputs, flooder.pcm_bytes) == (0, 0)
    assert (neighbour.inputs, neighbour.pcm_bytes) == (0, 0)


@pytest.mark.parametrize("worker", ["thread", "process", "inline"])
async def test_what_a_worker_took_waits_no_more(worker: str, listener: Listener) -> None:
    client = create_client(stage(EchoModel, worker=worker))
    await client.start(listener.on_output, listener.on_dead)
    backlog = Backlog()
    client.submit(StageInput("gone", pcm=bytes(50)), backlog)
    client.submit(StageAbort(("gone",)))
    client.submit(StageInput("r", pcm=bytes(100)), backlog)
    assert (backlog.inputs, backlog.pcm_bytes) == (2, 150)

    await listener.output_of("r")
    assert (backlog.inputs, backlog.pcm_bytes) == (0, 0)
    await client.stop()


@pytest.mark.parametrize("worker", ["thread", "process", "inline"])
async def test_what_died_with_its_worker_waits_no_more(worker: str, listener: Listener) -> None:
    client = create_client(stage(EchoModel, worker=worker))
    await client.start(listener.on_output, listener.on_dead)
    backlog = Backlog()
    for _ in range(3):
        client.submit(StageInput("r", pcm=bytes(100), text="raise at once"), backlog)
    await listener.death()
    assert (backlog.inputs, backlog.pcm_bytes) == (0, 0)
    await client.stop()
