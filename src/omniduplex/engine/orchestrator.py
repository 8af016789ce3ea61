"""Turn requests: one input goes in at the first stage, outputs leave the last."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.messages import AbortRequests, AddRequest
from omniduplex.engine.orchestrator_base import OrchestratorBase
from omniduplex.stages.errors import StageUnavailable
from omniduplex.stages.messages import StageInput, StageOutput
from omniduplex.stages.pool import StagePool

logger = logging.getLogger(__name__)


class Orchestrator(OrchestratorBase):
    """Admits turn requests and forwards each stage's outputs to the next."""

    def __init__(
        self,
        pipeline: PipelineConfig,
        *,
        make_pool: Callable[[StageConfig], StagePool] = StagePool,
    ) -> None:
        super().__init__(pipeline, make_pool=make_pool)
        self._requests: dict[str, Callable[[StageOutput], None]] = {}

    def _dispatch_message(self, message: object) -> bool:
        match message:
            case AddRequest():
                self._add(message)
            case AbortRequests():
                self._abort_requests(message.request_ids)
            case _:
                return False
        return True

    def _add(self, message: AddRequest) -> None:
        request_id = message.request.request_id
        if request_id in self._requests:
            message.on_output(StageOutput(request_id, error=f"request {request_id!r} is running"))
            return
        self._requests[request_id] = message.on_output
        self._give(self._stage_ids[0], message.request)

    def _give(self, stage_id: int, request: StageInput) -> None:
        try:
            self._submit_input(stage_id, request)
        except StageUnavailable as error:
            self._fail(request.request_id, str(error))

    def _forward(self, stage_id: int, output: StageOutput) -> None:
        on_output = self._requests.get(output.request_id)
        if on_output is None:
            return
        following = self._next_stage(stage_id)
        if following is None or output.error:
            if output.finished or output.error:
                self._abort_requests((output.request_id,))
            on_output(output)
            return
        self._give(
            following,
            StageInput(
                output.request_id,
                epoch=output.epoch,
                pcm=output.pcm,
                text=output.text,
                final=output.finished,
                data=output.data,
            ),
        )

    def _fail(self, request_id: str, reason: str) -> None:
        on_output = self._requests.get(request_id)
        self._abort_requests((request_id,))
        if on_output is not None:
            on_output(StageOutput(request_id, error=reason))

    def _handle_lost_requests(
        self, stage_id: int, request_ids: tuple[str, ...], reason: str
    ) -> None:
        for request_id in request_ids:
            self._fail(request_id, reason)

    async def _shutdown_extensions(self) -> None:
        for request_id in tuple(self._requests):
            try:
                self._fail(request_id, "the engine is shutting down")
            except Exception:
                logger.exception("request %s could not be told of the shutdown", request_id)

    def _cleanup_request_ids(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            self._requests.pop(request_id, None)
