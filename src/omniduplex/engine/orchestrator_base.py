"""What every orchestrator does: start the stages, carry inputs to them, route what comes back."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.stages.backlog import Backlog
from omniduplex.stages.messages import StageAbort, StageInput, StageOutput
from omniduplex.stages.pool import StagePool

logger = logging.getLogger(__name__)


class OrchestratorBase(ABC):
    """Generic stage machinery with template seams; lives on the engine loop.

    Seams a subclass may fill: `_dispatch_message`, `_background_tasks`, `_shutdown_extensions`,
    `_intercept_stage_output`, `_handle_lost_requests`, `_cleanup_request_ids`.
    """

    def __init__(
        self,
        pipeline: PipelineConfig,
        *,
        make_pool: Callable[[StageConfig], StagePool] = StagePool,
    ) -> None:
        self._pipeline = pipeline
        self._pools = {stage.stage_id: make_pool(stage) for stage in pipeline.stages}
        self._stage_ids = tuple(stage.stage_id for stage in pipeline.stages)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def alive(self) -> bool:
        """Whether every stage has a worker that takes requests."""
        return all(pool.alive for pool in self._pools.values())

    async def start(self) -> None:
        """Start all stages, then the background tasks; raises `StageStartError`."""
        starts = [self._start_pool(stage_id) for stage_id in self._stage_ids]
        try:
            await asyncio.gather(*starts)
        except BaseException:
            await self._stop_pools()
            raise
        self._tasks = [
            asyncio.create_task(work, name=name) for name, work in self._background_tasks().items()
        ]

    async def _start_pool(self, stage_id: int) -> None:
        await self._pools[stage_id].start(
            partial(self._route_output, stage_id),
            lambda replica, request_ids, reason: self._lost(stage_id, request_ids, reason),
        )

    async def shutdown(self) -> None:
        """End everything; returns when no worker is left."""
        await self._shutdown_extensions()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stop_pools()

    async def _stop_pools(self) -> None:
        await asyncio.gather(*(pool.stop() for pool in self._pools.values()))

    def dispatch(self, message: object) -> None:
        """Take a message from the engine's inbox."""
        if not self._dispatch_message(message):
            raise TypeError(f"nobody takes a {type(message).__name__}")

    def _submit_input(
        self, stage_id: int, message: StageInput, backlog: Backlog | None = None
    ) -> None:
        """Give an input to a stage, counted in this backlog; raises `StageUnavailable`."""
        self._pools[stage_id].submit(message, backlog)

    def _abort_requests(self, request_ids: tuple[str, ...]) -> None:
        for pool in self._pools.values():
            pool.submit(StageAbort(request_ids))
        self._cleanup_request_ids(request_ids)

    def _route_output(self, stage_id: int, output: StageOutput) -> None:
        """The one place where stage outputs arrive; a failure of one leaves the others alone."""
        try:
            if not self._intercept_stage_output(stage_id, output):
                self._forward(stage_id, output)
        except Exception:
            logger.exception("output of stage %s for %s", stage_id, output.request_id)

    def _lost(self, stage_id: int, request_ids: tuple[str, ...], reason: str) -> None:
        logger.error("stage %s lost %d requests: %s", stage_id, len(request_ids), reason)
        self._handle_lost_requests(stage_id, request_ids, reason)
        self._cleanup_request_ids(request_ids)

    # -- seams ------------------------------------------------------------------------------

    @abstractmethod
    def _dispatch_message(self, message: object) -> bool:
        """Handle a message; false when it is not one of mine."""

    @abstractmethod
    def _forward(self, stage_id: int, output: StageOutput) -> None:
        """Pass an output on: to the next stage, or out."""

    @abstractmethod
    def _handle_lost_requests(
        self, stage_id: int, request_ids: tuple[str, ...], reason: str
    ) -> None:
        """These requests died with their worker."""

    @abstractmethod
    def _cleanup_request_ids(self, request_ids: Iterable[str]) -> None:
        """These requests are over: forget what is kept about them."""

    def _background_tasks(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Tasks by name that run as long as the orchestrator does."""
        return {}

    async def _shutdown_extensions(self) -> None:
        """End what a subclass runs on top, while the stages still live."""
        return

    def _intercept_stage_output(self, stage_id: int, output: StageOutput) -> bool:
        """True keeps the output from being forwarded."""
        return False
