"""Workers that fail, are killed, or hang: found out and reported once."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stages.support import Listener, both, process_is_gone, running, stage
from tests.stages.worker_models import (
    ComputingModel,
    DeadlockedModel,
    EchoModel,
    GatedModel,
    GraspingModel,
    HangingModel,
    SleeplessModel,
    SlowModel,
)

from omniduplex.stages.errors import StageUnavailable
from omniduplex.stages.factory import create_client
from omniduplex.stages.messages import StageInput, StageOutput
from omniduplex.stages.process_client import describe_exit
from omniduplex.stages.stillness import LOOK_S, STILL_LOOKS

pytestmark = pytest.mark.anyio


FOR_EVER_S = 1000.0

NOBODY_STIRS = "the worker's process is stopped, or its threads wait for each other"

STEP_WAITS = "the worker's step waits for what does not come"


@both
async def test_an_error_in_a_step_kills_the_worker_once(worker: str, listener: Listener) -> None:
    client = await running(stage(EchoModel, worker=worker), listener)

    client.submit(StageInput("r", text="raise out of memory"))

    assert await listener.death() == "RuntimeError: out of memory"
    assert not client.alive
    with pytest.raises(StageUnavailable, match="'test' is not running"):
        client.submit(StageInput("r"))
    await client.stop()
    assert client.pid is None or process_is_gone(client.pid)
    assert listener.deaths_left == 0


async def test_a_killed_process_is_reported_once(listener: Listener) -> None:
    client = await running(stage(EchoModel), listener)
    assert client.pid is not None

    os.kill(client.pid, signal.SIGKILL)

    assert await listener.death() == "the worker was killed by SIGKILL"
    await client.stop()
    assert listener.deaths_left == 0
    assert process_is_gone(client.pid)


async def test_a_process_that_exits_by_itself_is_reported_with_its_status(
    listener: Listener,
) -> None:
    client = await running(stage(EchoModel), listener)

    client.submit(StageInput("r", text="exit 3"))

    assert await listener.death() == "the worker exited with status 3"


async def test_a_process_that_hangs_is_killed_and_reported_once(listener: Listener) -> None:
    client = await running(stage(HangingModel, hang_timeout_s=0.05), listener)
    client.submit(StageInput("r"))

    assert await listener.death() == "the worker did not answer for 0.05 s"
    with pytest.raises(StageUnavailable):
        client.submit(StageInput("r"))
    await client.stop()
    assert client.pid is not None
    assert process_is_gone(client.pid)
    assert listener.deaths_left == 0


async def test_a_process_that_is_stopped_hangs_too(listener: Listener) -> None:
    client = await running(stage(EchoModel, hang_timeout_s=0.05), listener)
    assert client.pid is not None
    os.kill(client.pid, signal.SIGSTOP)

    client.submit(StageInput("r"))

    assert await listener.death() == "the worker did not answer for 0.05 s"
    await client.stop()
    assert process_is_gone(client.pid)


@pytest.mark.parametrize("given", [True, False])
async def test_a_stopped_process_is_known_by_what_the_kernel_says(
    listener: Listener, given: bool
) -> None:
    client = await running(stage(EchoModel, hang_timeout_s=FOR_EVER_S), listener)
    assert client.pid is not None
    os.kill(client.pid, signal.SIGSTOP)
    if given:
        client.submit(StageInput("r"))

    assert await listener.death() == NOBODY_STIRS
    await client.stop()
    assert process_is_gone(client.pid)
    assert listener.deaths_left == 0


async def test_threads_that_wait_for_each_other_are_known_too(listener: Listener) -> None:
    client = await running(stage(DeadlockedModel, hang_timeout_s=FOR_EVER_S), listener)

    client.submit(StageInput("r"))

    # Both questions are open, and are looked at by turns.
    assert await listener.death() in (NOBODY_STIRS, STEP_WAITS)
    await client.stop()


async def test_a_step_of_a_sleepless_model_that_sleeps_is_stuck(listener: Listener) -> None:
    client = await running(stage(SleeplessModel, hang_timeout_s=FOR_EVER_S), listener)

    client.submit(StageInput("r"))

    assert await listener.death() == STEP_WAITS
    await client.stop()


async def test_a_step_that_sleeps_for_a_reason_has_the_time_of_its_stage(
    listener: Listener, fifo: Path
) -> None:
    options = {"go": str(fifo)}
    client = await running(stage(GatedModel, hang_timeout_s=FOR_EVER_S, options=options), listener)
    client.submit(StageInput("r"))
    assert (await listener.output()).text == "r"
    await looked(times=3 * STILL_LOOKS)
    await asyncio.to_thread(fifo.write_text, "go")

    assert await listener.output() == StageOutput("r")
    assert listener.deaths_left == 0
    await client.stop()


async def test_a_step_that_waits_with_the_lock_of_python_has_that_time_too(
    listener: Listener, fifo: Path
) -> None:
    config = stage(GraspingModel, hang_timeout_s=FOR_EVER_S, options={"go": str(fifo)})
    client = await running(config, listener)
    client.submit(StageInput("r"))
    with await asyncio.to_thread(fifo.open, "wb"):  # both ends are open: the step is under way
        await looked(times=3 * STILL_LOOKS)
        assert client.alive

    assert await listener.output() == StageOutput("r")
    assert listener.deaths_left == 0
    await client.stop()


async def test_on_a_busy_machine_nobody_is_taken_for_dead(listener: Listener, fifo: Path) -> None:
    """The worker computes without ever letting another thread of it run, at the lowest priority."""
    options = {"go": str(fifo)}
    config = stage(ComputingModel, hang_timeout_s=FOR_EVER_S, nice=19, options=options)
    client = await running(config, listener)
    with busy_processors():
        opening = asyncio.create_task(asyncio.to_thread(fifo.open, "wb"))
        client.submit(StageInput("r"))
        with await opening:  # both ends are open: the step is under way
            await looked(times=3 * STILL_LOOKS)
            assert client.alive
            assert client.pid is not None
            os.kill(client.pid, signal.SIGUSR1)

            assert (await listener.output()).text == "computed"
    assert listener.deaths_left == 0
    await client.stop()


async def looked(*, times: int) -> None:
    """Let a client look so often at whether its worker stirs."""
    loop = asyncio.get_running_loop()
    for _ in range(times):
        passed = loop.create_future()
        loop.call_later(LOOK_S, passed.set_result, None)
        await passed


@contextlib.contextmanager
def busy_processors() -> Iterator[None]:
    """Give every processor of this machine something else to do."""
    loop = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(loop) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


async def test_a_thread_that_hangs_is_left_behind_and_says_nothing_any_more(
    listener: Listener, fifo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"go": str(fifo)}
    # Long enough for a thread of a busy machine to begin its step.
    config = stage(GatedModel, worker="thread", hang_timeout_s=2.0, options=options)
    client = await running(config, listener)
    client.submit(StageInput("r"))
    assert (await listener.output()).text == "r"

    assert await listener.death() == "the worker did not answer for 2 s"
    assert "thread of stage test hangs and is left behind" in caplog.text
    await asyncio.to_thread(fifo.write_text, "go")
    await client.stop()
    assert listener.silent
    assert listener.deaths_left == 0


async def test_a_load_may_take_longer_than_a_step(listener: Listener, fifo: Path) -> None:
    config = stage(SlowModel, hang_timeout_s=1e-9, options={"go": str(fifo)})
    client = create_client(config)
    start = asyncio.create_task(client.start(listener.on_output, listener.on_dead))
    await asyncio.to_thread(fifo.write_text, "go")

    await start

    assert client.alive
    assert listener.deaths_left == 0
    await client.stop()


async def test_a_worker_may_take_its_time_when_the_stage_says_so(
    listener: Listener, fifo: Path
) -> None:
    config = stage(GatedModel, hang_timeout_s=0, options={"go": str(fifo)})
    client = await running(config, listener)
    client.submit(StageInput("r"))
    assert (await listener.output()).text == "r"
    assert client.alive
    await asyncio.to_thread(fifo.write_text, "go")

    assert await listener.output() == StageOutput("r")
    await client.stop()


async def test_a_child_that_holds_the_socket_of_a_dead_worker_does_not_hide_its_death(
    listener: Listener, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omniduplex.stages.process_client.EOF_TIMEOUT_S", 0.001)
    client = await running(stage(EchoModel), listener)
    client.submit(StageInput("r", text=f"fork {fifo}"))
    await listener.output()
    assert client.pid is not None

    os.kill(client.pid, signal.SIGKILL)

    assert await listener.death() == "the worker was killed by SIGKILL"
    await asyncio.to_thread(fifo.write_text, "end the child")
    await client.stop()


def test_how_an_exit_is_described() -> None:
    assert describe_exit(-9) == "the worker was killed by SIGKILL"
    assert describe_exit(3) == "the worker exited with status 3"
