"""What goes into a worker comes out of it, wherever it runs."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.stages.support import Listener, both, everywhere, running, stage
from tests.stages.worker_models import EchoModel, GatedModel, PatientModel, ThreadedModel

from omniduplex.stages.client import ThreadStageClient
from omniduplex.stages.errors import StageOverloaded
from omniduplex.stages.factory import create_client
from omniduplex.stages.inline import InlineStageClient
from omniduplex.stages.messages import StageAbort, StageInput, StageOutput
from omniduplex.stages.process_client import ProcessStageClient

pytestmark = pytest.mark.anyio


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
