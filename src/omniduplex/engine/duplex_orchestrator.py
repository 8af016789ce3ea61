"""Sessions on top of turn requests: owns the session manager and is its way to the stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.duplex.contracts import DuplexStagePort, Submit
from omniduplex.engine.duplex.link import AbandonSession, SessionCommand
from omniduplex.engine.duplex.plugin import DuplexModelPlugin
from omniduplex.engine.duplex.session.manager import DuplexSessionManager
from omniduplex.engine.messages import AbortTurn, AddTurn
from omniduplex.engine.orchestrator import Orchestrator
from omniduplex.engine.turn_plugin import TurnPlugin
from omniduplex.stages.messages import StageOutput
from omniduplex.stages.pool import StagePool

CONVERTERS = 2
"""Threads for what a session must not do on the loop: large conversions, plugin set-up."""


def route_of(request_id: str) -> str:
    """What the requests of one session have in common; the id of a turn request itself."""
    if not request_id.startswith("duplex-s."):
        return request_id
    return request_id.partition(".e.")[0]


def make_session_pool(stage: StageConfig) -> StagePool:
    """A pool that keeps a session on one replica, where its model has what it knows of it."""
    return StagePool(stage, route_key=route_of)


class DuplexOrchestrator(Orchestrator, DuplexStagePort):
    """Hands session-owned stage outputs to their sessions; all others belong to turns."""

    def __init__(
        self,
        pipeline: PipelineConfig,
        plugin: DuplexModelPlugin,
        *,
        turns: TurnPlugin | None = None,
        make_pool: Callable[[StageConfig], StagePool] = make_session_pool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(pipeline, make_pool=make_pool)
        self._owners: dict[str, str] = {}
        self._executor = ThreadPoolExecutor(CONVERTERS, thread_name_prefix="session-work")
        self.manager = DuplexSessionManager(
            plugin=plugin,
            port=self,
            limits=pipeline.duplex_session,
            executor=self._executor,
            clock=clock,
            turns=turns,
        )

    # -- the stage port ---------------------------------------------------------------------

    def submit(self, session_id: str, work: Submit) -> None:
        """Give a session's input to a stage and remember whose request it is."""
        self._submit_input(work.stage_id, work.message, self.manager.backlog(session_id))
        self._owners[work.message.request_id] = session_id

    def abort(self, request_ids: tuple[str, ...]) -> None:
        """Drop a session's requests on every stage."""
        self._abort_requests(request_ids)

    def release(self, session_id: str) -> None:
        """Drop what a session left open; its workers' death has done so for what they had."""
        left = tuple(id_ for id_, owner in self._owners.items() if owner == session_id)
        if left:
            self._abort_requests(left)

    def run_turn(self, message: AddTurn | AbortTurn) -> None:
        """Do what the message says at once: its session has waited in the engine's inbox."""
        self._dispatch_message(message)

    # -- seams ------------------------------------------------------------------------------

    def _dispatch_message(self, message: object) -> bool:
        match message:
            case SessionCommand():
                self.manager.dispatch(message)
            case AbandonSession():
                self.manager.close(message.session_id, "open_abandoned")
            case _:
                return super()._dispatch_message(message)
        return True

    def _intercept_stage_output(self, stage_id: int, output: StageOutput) -> bool:
        session_id = self._owners.get(output.request_id)
        if session_id is None:
            return False
        if output.finished or output.error:
            del self._owners[output.request_id]
        self.manager.stage_output(session_id, stage_id, output)
        return True

    def _handle_lost_requests(
        self, stage_id: int, request_ids: tuple[str, ...], reason: str
    ) -> None:
        owned = {self._owners[id_] for id_ in request_ids if id_ in self._owners}
        others = tuple(id_ for id_ in request_ids if id_ not in self._owners)
        self.manager.stage_lost(owned, stage_id, reason)
        super()._handle_lost_requests(stage_id, others, reason)

    def _cleanup_request_ids(self, request_ids: Iterable[str]) -> None:
        ids = tuple(request_ids)
        super()._cleanup_request_ids(ids)
        for request_id in ids:
            self._owners.pop(request_id, None)

    def _background_tasks(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {"session-reaper": self.manager.reaper_loop()}

    async def _shutdown_extensions(self) -> None:
        self.manager.close_all("shutdown")
        await super()._shutdown_extensions()
        self._executor.shutdown(wait=False, cancel_futures=True)
