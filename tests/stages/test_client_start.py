"""Workers that do not come up: told in their own words, and nothing of them left."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.stages.support import Listener, both, everywhere, process_is_gone, stage
from tests.stages.worker_models import BrokenModel, DyingModel, EchoModel, SlowModel

from omniduplex.stages.client import StageClient, ThreadStageClient
from omniduplex.stages.errors import StageStartError
from omniduplex.stages.factory import create_client
from omniduplex.stages.process_client import ProcessStageClient

pytestmark = pytest.mark.anyio


@everywhere
async def test_a_model_that_does_not_load_is_told_in_its_own_words(
    worker: str, listener: Listener
) -> None:
    client = create_client(stage(BrokenModel, worker=worker))

    with pytest.raises(StageStartError, match="OSError: the weights are not there"):
        await client.start(listener.on_output, listener.on_dead)

    assert not client.alive
    assert listener.deaths_left == 0
    assert client.pid is None or process_is_gone(client.pid)


@everywhere
async def test_a_wrong_option_is_told_at_the_start(worker: str, listener: Listener) -> None:
    client = create_client(stage(EchoModel, worker=worker, options={"prefiks": "x"}))

    with pytest.raises(StageStartError, match=r"options of stage 'test'.*prefiks"):
        await client.start(listener.on_output, listener.on_dead)


async def test_a_process_that_dies_while_it_loads_is_a_failed_start(listener: Listener) -> None:
    client = create_client(stage(DyingModel))

    with pytest.raises(StageStartError, match="exited with status 7"):
        await client.start(listener.on_output, listener.on_dead)
    assert listener.deaths_left == 0


async def test_a_process_that_cannot_be_made_is_a_failed_start(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")

    with pytest.raises(StageStartError, match=r"cannot start a process: .*No such file"):
        await create_client(stage(EchoModel)).start(listener.on_output, listener.on_dead)


@pytest.mark.parametrize("client_class", [ThreadStageClient, ProcessStageClient])
async def test_a_start_that_takes_too_long_is_given_up(
    client_class: type[StageClient], listener: Listener, fifo: Path
) -> None:
    config = stage(SlowModel, options={"go": str(fifo)})
    client = client_class(config, start_timeout_s=0.5)

    with pytest.raises(StageStartError, match=r"'test' was not ready after 0\.5 s"):
        await client.start(listener.on_output, listener.on_dead)

    assert client.pid is None or process_is_gone(client.pid)
    if client_class is ThreadStageClient:
        await asyncio.to_thread(fifo.write_text, "go")
    await client.stop()
    assert not client.alive
    assert listener.deaths_left == 0


async def test_a_cancelled_start_leaves_no_process(listener: Listener, fifo: Path) -> None:
    client = create_client(stage(SlowModel, options={"go": str(fifo)}))
    start = asyncio.create_task(client.start(listener.on_output, listener.on_dead))
    with await asyncio.to_thread(fifo.open, "wb"):  # the model has begun to load
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start

    assert client.pid is not None
    assert process_is_gone(client.pid)


@both
async def test_stop_while_it_starts_fails_the_start(
    worker: str, listener: Listener, fifo: Path
) -> None:
    client = create_client(stage(SlowModel, worker=worker, options={"go": str(fifo)}))
    start = asyncio.create_task(client.start(listener.on_output, listener.on_dead))
    with await asyncio.to_thread(fifo.open, "wb", 0) as loading:
        stop = asyncio.create_task(client.stop())
        with pytest.raises(StageStartError, match="stopped while it started"):
            await start
        with contextlib.suppress(BrokenPipeError):  # a process was killed, a thread waits still
            loading.write(b"go")
    await stop

    assert not client.alive
    assert listener.deaths_left == 0
    assert client.pid is None or process_is_gone(client.pid)
