"""Turns: each is a little plan of stage work, and its plugin says what follows from what."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.messages import AbortTurn, AddTurn
from omniduplex.engine.orchestrator_base import OrchestratorBase
from omniduplex.engine.turn_plugin import TurnStep
from omniduplex.engine.turns import TurnChunk, TurnFailure
from omniduplex.stages.errors import StageUnavailable
from omniduplex.stages.messages import StageOutput
from omniduplex.stages.pool import StagePool

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _RunningTurn:
    """A turn, and the stage requests it has made."""

    added: AddTurn
    request_ids: dict[str, None] = field(default_factory=dict)


class Orchestrator(OrchestratorBase):
    """Admits turns, does what they ask of the stages, and gives their chunks out."""

    def __init__(
        self,
        pipeline: PipelineConfig,
        *,
        make_pool: Callable[[StageConfig], StagePool] = StagePool,
    ) -> None:
        super().__init__(pipeline, make_pool=make_pool)
        self._turns: dict[str, _RunningTurn] = {}
        self._turn_of: dict[str, _RunningTurn] = {}  # by stage request

    @property
    def active_turns(self) -> int:
        """Turns that have not ended."""
        return len(self._turns)

    def _dispatch_message(self, message: object) -> bool:
        match message:
            case AddTurn():
                self._add(message)
            case AbortTurn():
                if running := self._turns.get(message.turn_id):
                    self._end(running)
            case _:
                return False
        return True

    def _add(self, message: AddTurn) -> None:
        if message.turn_id in self._turns:
            message.on_part(TurnFailure(f"turn {message.turn_id!r} is running"))
            return
        running = _RunningTurn(message)
        self._turns[message.turn_id] = running
        self._advance(running, message.turn.begin)

    def _forward(self, stage_id: int, output: StageOutput) -> None:
        running = self._turn_of.get(output.request_id)
        if running is None:
            return
        if output.error:
            self._fail(running, output.error)
            return
        self._advance(running, lambda: running.added.turn.take(stage_id, output))

    def _advance(self, running: _RunningTurn, plan: Callable[[], Sequence[TurnStep]]) -> None:
        try:
            self._perform(running, plan())
        except StageUnavailable as error:
            self._fail(running, str(error))
        except Exception:
            # The plugin broke, or the reader's loop is gone: either way nobody waits for more.
            self._fail(running, "the turn broke; the server's log says why")
            raise

    def _perform(self, running: _RunningTurn, steps: Sequence[TurnStep]) -> None:
        for step in steps:
            if isinstance(step, TurnChunk):
                if step.finished:
                    self._end(running)
                running.added.on_part(step)
                continue
            request_id = step.message.request_id
            running.request_ids[request_id] = None
            self._turn_of[request_id] = running
            self._submit_input(step.stage_id, step.message)
            if running.added.turn_id not in self._turns:
                return  # the stage was lost at that very moment

    def _fail(self, running: _RunningTurn, reason: str) -> None:
        if self._end(running):
            running.added.on_part(TurnFailure(reason))

    def _end(self, running: _RunningTurn) -> bool:
        """Forget a turn and its stage requests; false when it was over already."""
        if self._turns.get(running.added.turn_id) is not running:
            return False
        del self._turns[running.added.turn_id]
        self._abort_requests(tuple(running.request_ids))
        return True

    def _handle_lost_requests(
        self, stage_id: int, request_ids: tuple[str, ...], reason: str
    ) -> None:
        for request_id in request_ids:
            if running := self._turn_of.get(request_id):
                self._fail(running, reason)

    async def _shutdown_extensions(self) -> None:
        for running in tuple(self._turns.values()):
            try:
                self._fail(running, "the engine is shutting down")
            except Exception:
                logger.exception("turn %s could not be told", running.added.turn_id)

    def _cleanup_request_ids(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            self._turn_of.pop(request_id, None)
