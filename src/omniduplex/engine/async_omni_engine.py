"""The engine of turn requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TypeVar

from omniduplex.engine.channel import ChannelClosed
from omniduplex.engine.messages import AbortRequests, AddRequest
from omniduplex.engine.omni_engine_base import OmniEngineBase
from omniduplex.engine.orchestrator import Orchestrator
from omniduplex.stages.messages import StageInput, StageOutput

TurnOrchestratorT = TypeVar("TurnOrchestratorT", bound=Orchestrator)


class StageFailed(Exception):  # noqa: N818 - it reports the stage's failure, not the caller's
    """A stage could not finish a request; the message is the stage's own."""


class TurnEngineBase(OmniEngineBase[TurnOrchestratorT]):
    """Turn requests over any orchestrator that admits them."""

    async def generate(self, request: StageInput) -> AsyncIterator[StageOutput]:
        """Run one request and yield the last stage's outputs; leaving early aborts it.

        Raises:
            StageFailed: a stage answered with an error or died.
        """
        loop = asyncio.get_running_loop()
        outputs: asyncio.Queue[StageOutput] = asyncio.Queue()
        finished = False

        def take(output: StageOutput) -> None:
            loop.call_soon_threadsafe(outputs.put_nowait, output)

        self.send(AddRequest(request, take))
        try:
            while not finished:
                output = await outputs.get()
                finished = output.finished or bool(output.error)
                if output.error:
                    raise StageFailed(output.error)
                yield output
        finally:
            if not finished:
                with contextlib.suppress(ChannelClosed):  # nothing runs any more
                    self.send(AbortRequests((request.request_id,)))


class AsyncOmniEngine(TurnEngineBase[Orchestrator]):
    """The turn-based engine."""

    def _create_orchestrator(self) -> Orchestrator:
        return Orchestrator(self.pipeline)
