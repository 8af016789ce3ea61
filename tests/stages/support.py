"""What the tests of stages share: stage configs, and somebody who listens."""

import asyncio
import os
from typing import Any

import pytest
from tests.stages.worker_models import path_of

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.client import StageClient
from omniduplex.stages.factory import create_client
from omniduplex.stages.messages import StageOutput
from omniduplex.stages.model import StageModel

TIMEOUT_S = 60.0

both = pytest.mark.parametrize("worker", ["thread", "process"])
everywhere = pytest.mark.parametrize("worker", ["thread", "process", "inline"])


def stage(model_class: type[StageModel], **fields: Any) -> StageConfig:
    return StageConfig(stage_id=0, name="test", model_class=path_of(model_class), **fields)


class Listener:
    """Collects what a client or a pool reports, and waits for it."""

    def __init__(self) -> None:
        self._outputs: asyncio.Queue[StageOutput] = asyncio.Queue()
        self._deaths: asyncio.Queue[Any] = asyncio.Queue()

    def on_output(self, output: StageOutput) -> None:
        self._outputs.put_nowait(output)

    def on_dead(self, reason: str) -> None:
        self._deaths.put_nowait(reason)

    def on_replica_dead(self, index: int, request_ids: tuple[str, ...], reason: str) -> None:
        self._deaths.put_nowait((index, request_ids, reason))

    async def output(self) -> StageOutput:
        async with asyncio.timeout(TIMEOUT_S):
            return await self._outputs.get()

    async def output_of(self, request_id: str) -> StageOutput:
        while (output := await self.output()).request_id != request_id:
            pass
        return output

    async def death(self) -> Any:
        async with asyncio.timeout(TIMEOUT_S):
            return await self._deaths.get()

    @property
    def silent(self) -> bool:
        return self._outputs.empty()

    @property
    def deaths_left(self) -> int:
        return self._deaths.qsize()


def process_is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def running(config: StageConfig, listener: Listener) -> StageClient:
    client = create_client(config)
    await client.start(listener.on_output, listener.on_dead)
    return client
