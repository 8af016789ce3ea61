import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stages.support import Listener, process_is_gone, stage
from tests.stages.worker_models import (
    BrokenModel,
    ComputingModel,
    DeadlockedModel,
    DyingModel,
    EchoModel,
    GatedModel,
    GraspingModel,
    HangingModel,
    PatientModel,
    SleeplessModel,
    SlowModel,
    ThreadedModel,
)

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.client import StageClient, ThreadStageClient
from omniduplex.stages.errors import StageOverloaded, StageStartError, StageUnavailable
from omniduplex.stages.factory import create_client
from omniduplex.stages.inline import InlineStageClient
from omniduplex.stages.messages import StageAbort, StageInput, StageOutput
from omniduplex.stages.process_client import ProcessStageClient, describe_exit
from omniduplex.stages.stillness import LOOK_S, STILL_LOOKS

pytestmark = pytest.mark.anyio

FOR_EVER_S = 1000.0
NOBODY_STIRS = "the worker's process is stopped, or its threads wait for each other"
STEP_WAITS = "the worker's step waits for what does not come"

both = pytest.mark.parametrize("worker", ["thread", "process"])
everywhere = pytest.mark.parametrize("worker", ["thread", "process", "inline"])


async def running(config: StageConfig, listener: Listener) -> StageClient:
    client = create_client(config)
    await client.start(listener.on_output, listener.on_dead)
    return client


def test_the_config_decides_where_a_stage_runs() -> None:
    assert isinstance(create_client(stage(EchoModel, worker="inline")), InlineStageClient)
    assert isinstance(create_client(stage(EchoModel, worker="thread")), ThreadStageClient)
    assert isinstance(create_client(stage(EchoModel)), ProcessStageClient)


@everywhere
async def test_what_goes_in_comes_out(worker: str, listener: Listener) -> None:
    client = await running(stage(EchoModel, worker=worker, options={"prefix": "> "}), listener)
    assert client.alive
    assert (client.pid is None) == (worker != "process")

    client.submit(StageInput("r", epoch=4, pcm=b"\x01\x02", text="hi", final=True))

    assert await listener.output() == StageOutput(
        "r", epoch=4, pcm=b"\x01\x02", text="> hi", finished=True
    )
    await client.stop()
    assert not client.alive
    assert listener.deaths_left == 0


@everywhere
async def test_a_model_that_has_more_to_do_is_stepped_again(
    worker: str, listener: Listener
) -> None:
    client = await running(stage(PatientModel, worker=worker), listener)

    client.submit(StageInput("r", text="more"))

    assert [(await listener.output()).text for _ in range(5)] == ["more", "", "", "", ""]
    await client.stop()
    assert listener.silent


@both
async def test_outputs_keep_their_order(worker: str, listener: Listener) -> None:
    client = await running(stage(EchoModel, worker=worker), listener)

    client.submit(StageInput("a", text="count 500"))
    client.submit(StageInput("b"))
    texts = [(await listener.output()).text for _ in range(502)]

    assert texts == [*map(str, range(500)), "count 500", ""]
    await client.stop()


@both
async def test_big_audio_passes(worker: str, listener: Listener) -> None:
    client = await running(stage(EchoModel, worker=worker), listener)
    pcm = os.urandom(8 * 1024 * 1024)

    client.submit(StageInput("r", pcm=pcm))

    assert (await listener.output()).pcm == pcm
    await client.stop()


@both
async def test_an_abort_is_effective_at_once(worker: str, listener: Listener) -> None:
    client = await running(stage(ThreadedModel, worker=worker), listener)
    client.submit(StageInput("gone"))
    await listener.output_of("gone")
    while not listener.silent:
        await listener.output()

    client.submit(StageAbort(("gone",)))

    outputs = [await listener.output()]
    client.submit(StageInput("next"))
    outputs += [await listener.output() for _ in range(20)]
    assert [output.request_id for output in outputs] == ["control"] + ["next"] * 20
    await client.stop()


@both
async def test_late_outputs_of_an_aborted_request_are_dropped(
    worker: str, listener: Listener
) -> None:
    client = await running(stage(EchoModel, worker=worker), listener)

    client.submit(StageInput("a"))
    client.submit(StageAbort(("a",)))
    client.submit(StageInput("b", text="speak_for a"))

    assert (await listener.output()).request_id == "b"
    await client.stop()


@both
async def test_beyond_max_queue_inputs_are_refused_until_the_worker_takes_some(
    worker: str, listener: Listener, fifo: Path
) -> None:
    options = {"go": str(fifo)}
    config = stage(GatedModel, worker=worker, max_queue=3, hang_timeout_s=0, options=options)
    client = await running(config, listener)
    client.submit(StageInput("busy"))
    assert (await listener.output()).text == "busy"

    for name in "abc":
        client.submit(StageInput(name))
    with pytest.raises(StageOverloaded, match="3 inputs wait"):
        client.submit(StageInput("d"))
    client.submit(StageAbort(("e",)))  # for which there is always room

    async def taken(count: int) -> list[str]:
        """The next inputs, in as many steps as the worker is quick to read them."""
        names: list[str] = []
        while len(names) < count:
            await asyncio.to_thread(fifo.write_text, "go")
            names += (await listener.output_of("gate")).text.split()
        return names

    assert await taken(3) == ["a", "b", "c"]
    client.submit(StageInput("d"))
    assert await taken(1) == ["d"]
    await asyncio.to_thread(fifo.write_text, "go")
    await client.stop()


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


async def test_stop_before_start_is_nothing() -> None:
    await create_client(stage(EchoModel)).stop()


async def test_a_process_is_as_nice_as_it_is_told(listener: Listener) -> None:
    client = await running(stage(EchoModel, nice=5), listener)

    client.submit(StageInput("r", text="nice"))

    assert int((await listener.output()).text) == os.nice(0) + 5
    await client.stop()


async def test_ctrl_c_does_not_reach_a_process_worker(listener: Listener) -> None:
    client = await running(stage(EchoModel), listener)

    client.submit(StageInput("r", text="sigint"))

    assert (await listener.output()).text == "sigint"
    await client.stop()


def test_how_an_exit_is_described() -> None:
    assert describe_exit(-9) == "the worker was killed by SIGKILL"
    assert describe_exit(3) == "the worker exited with status 3"
