"""Workers that are stopped: in good order, or by force."""

import asyncio
import threading
from pathlib import Path

import pytest
from tests.stages.support import Listener, process_is_gone, running, stage
from tests.stages.worker_models import EchoModel, GatedModel, HangingModel, ThreadedModel

from omniduplex.stages.errors import StageUnavailable
from omniduplex.stages.factory import create_client
from omniduplex.stages.messages import StageInput

pytestmark = pytest.mark.anyio


async def test_stop_ends_a_process_in_good_order(listener: Listener) -> None:
    client = await running(stage(EchoModel), listener)
    assert client.pid is not None
    assert not process_is_gone(client.pid)

    await client.stop()
    await client.stop()

    assert process_is_gone(client.pid)
    assert listener.deaths_left == 0
    with pytest.raises(StageUnavailable):
        client.submit(StageInput("r"))


async def test_stop_kills_a_process_that_obeys_nothing(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await running(stage(HangingModel), listener)
    client.submit(StageInput("r"))
    assert (await listener.output()).text == "hangs"

    await client.stop(timeout_s=0.001)

    assert client.pid is not None
    assert process_is_gone(client.pid)
    assert listener.deaths_left == 0


async def test_stop_ends_the_thread(listener: Listener) -> None:
    client = await running(stage(ThreadedModel, worker="thread"), listener)
    client.submit(StageInput("r"))
    await listener.output()

    await client.stop()

    assert [thread for thread in threading.enumerate() if thread.name == "stage-test"] == []


async def test_stop_leaves_a_thread_that_hangs_and_says_so(
    listener: Listener, fifo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = stage(GatedModel, worker="thread", hang_timeout_s=0, options={"go": str(fifo)})
    client = await running(config, listener)
    client.submit(StageInput("r"))
    await listener.output()

    await client.stop(timeout_s=0.001)

    assert "thread of stage test does not end" in caplog.text
    await asyncio.to_thread(fifo.write_text, "go")
    await client.stop()


async def test_stop_before_start_is_nothing() -> None:
    await create_client(stage(EchoModel)).stop()
