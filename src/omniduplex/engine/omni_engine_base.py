"""The engine's thread and loop, and the two ways onto it: one-way messages and calls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

import uvloop

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.channel import Channel
from omniduplex.engine.orchestrator_base import OrchestratorBase

logger = logging.getLogger(__name__)

OrchestratorT = TypeVar("OrchestratorT", bound=OrchestratorBase)
T = TypeVar("T")


class EngineStopped(RuntimeError):  # noqa: N818 - reads as the state it reports
    """The engine does not run (any more)."""


class OmniEngineBase(ABC, Generic[OrchestratorT]):
    """Runs an orchestrator on a loop of its own thread, so that no caller's loop ever waits."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        self.pipeline = pipeline
        self._orchestrator: OrchestratorT | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main_task: asyncio.Task[None] | None = None
        self._started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._inbox: Channel[object] = Channel(self._dispatch)
        self._thread = threading.Thread(target=self._run, name="omniduplex-engine", daemon=True)

    @abstractmethod
    def _create_orchestrator(self) -> OrchestratorT:
        """Make the orchestrator; called on the engine loop, before the stages start."""

    def start(self) -> None:
        """Start the stages and return when they are ready; raises what kept them from it."""
        self._thread.start()
        try:
            self._started.result()
        except BaseException:
            # Interrupted while the stages load, or they failed: leave no thread and no worker.
            self.shutdown()
            raise

    @property
    def alive(self) -> bool:
        """Whether the loop runs and every stage has a worker."""
        orchestrator = self._orchestrator
        return self._thread.is_alive() and orchestrator is not None and orchestrator.alive

    def send(self, message: object) -> None:
        """Put a message into the orchestrator's inbox, from any thread, without waiting."""
        self._inbox.put(message)

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine loop; cancelling the caller cancels it there too.

        What it does before it first waits is done in any case. Raises `EngineStopped`.
        """
        if self._loop is None or not self._thread.is_alive():
            work.close()
            raise EngineStopped("the engine is not running")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def shutdown(self, timeout_s: float = 20.0) -> None:
        """End the stages and the thread; returns when they are gone."""
        loop, main = self._loop, self._main_task
        if loop is not None and main is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(main.cancel)
            self._thread.join(timeout_s)

    @property
    def orchestrator(self) -> OrchestratorT:
        """The orchestrator, for work that runs on the engine loop."""
        if self._orchestrator is None:
            raise RuntimeError("the engine is not running")
        return self._orchestrator

    def _dispatch(self, message: object) -> None:
        self.orchestrator.dispatch(message)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(self._main())
            except asyncio.CancelledError:
                if not self._started.done():
                    self._started.cancel()
            except BaseException as error:
                if self._started.done():
                    logger.exception("the engine died")
                else:
                    self._started.set_exception(error)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main_task = asyncio.current_task()
        orchestrator = self._create_orchestrator()
        await orchestrator.start()
        self._orchestrator = orchestrator
        self._inbox.bind(self._loop)
        self._started.set_result(None)
        try:
            await asyncio.Event().wait()
        finally:
            self._inbox.close()
            await orchestrator.shutdown()
