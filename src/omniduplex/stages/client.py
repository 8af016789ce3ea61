"""The engine's side of one stage worker, the same for a process and for a thread."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.backlog import Backlog
from omniduplex.stages.errors import StageOverloaded, StageStartError, StageUnavailable
from omniduplex.stages.hang import HangWatch, LifeWatch, cannot_tell
from omniduplex.stages.messages import (
    FromWorker,
    StageAbort,
    StageAlive,
    StageDrained,
    StageFatal,
    StageInput,
    StageMessage,
    StageOutput,
    StagePing,
    StagePong,
    StageProbe,
    StageReady,
    StageStop,
    ToWorker,
)
from omniduplex.stages.stillness import Look
from omniduplex.stages.worker import AbortedRequests, Inbox, run_worker

logger = logging.getLogger(__name__)

T = TypeVar("T")
OnOutput = Callable[[StageOutput], None]
OnDead = Callable[[str], None]

START_TIMEOUT_S = 120.0


class StageClient(ABC):
    """One worker of a stage, started once; everything here happens on the loop of `start`."""

    def __init__(self, config: StageConfig, *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        self.config = config
        self._start_timeout_s = start_timeout_s
        self._aborted = AbortedRequests()
        self._backlog = Backlog()
        # In the order in which the worker takes them.
        self._waiting: deque[tuple[Backlog, int]] = deque()
        self._watch: HangWatch | None = None
        self._life: LifeWatch | None = None
        self._alive = False
        self._started = False
        self._stopping = False
        self._reported = False

    @property
    def alive(self) -> bool:
        """Whether the worker is ready and takes inputs."""
        return self._alive

    @property
    def pid(self) -> int | None:
        """The process id of the worker; None for a thread, or before the start."""
        return None

    async def start(self, on_output: OnOutput, on_dead: OnDead) -> None:
        """Start the worker and wait until its model is loaded.

        From then on `on_output` gets every output of a request that is not aborted, and `on_dead`
        is called once if the worker ends without `stop`, or hangs; `stop` is still to be called
        then, as a worker that has failed may not be gone yet. Raises `StageStartError`.
        """
        self._started = True
        self._loop = asyncio.get_running_loop()
        self._on_output, self._on_dead = on_output, on_dead
        self._ready: asyncio.Future[float] = self._loop.create_future()
        self._exited = asyncio.Event()
        try:
            async with asyncio.timeout(self._start_timeout_s):
                await self._launch()
                load_s = await self._ready
        except BaseException as error:
            self._stopping = True
            await self._discard()
            if isinstance(error, TimeoutError):
                raise StageStartError(
                    f"stage {self.config.name!r} was not ready after {self._start_timeout_s} s"
                ) from error
            raise
        logger.info("stage %s is ready after %.1f s", self.config.name, load_s)

    def submit(self, message: StageMessage, backlog: Backlog | None = None) -> None:
        """Give the worker an input or an abort; never blocks.

        After an abort returns, nothing more comes out for its requests. An input waits from here
        until the worker takes it for its next step, wherever it is in between. It counts in the
        `backlog` of whoever gives it; those that name none share one.

        Raises:
            StageUnavailable: the worker is not ready, or not any more.
            StageOverloaded: `max_queue` inputs of this backlog wait already. Aborts are always
                taken.
        """
        if not self._alive:
            raise StageUnavailable(f"stage {self.config.name!r} is not running")
        if isinstance(message, StageAbort):
            self._aborted.add(message.request_ids)
            self._send(message)
        else:
            self._submit_input(message, backlog or self._backlog)
        if self._watch is not None:
            self._watch.given()

    def _submit_input(self, message: StageInput, backlog: Backlog) -> None:
        most = self.config.max_queue
        if backlog.inputs >= most:
            name = self.config.name
            raise StageOverloaded(f"{backlog.inputs} inputs wait for stage {name!r} already")
        self._send(message)
        size = len(message.pcm)
        backlog.given(size, most)
        self._waiting.append((backlog, size))

    def _drained(self, count: int) -> None:
        take = self._waiting.popleft
        for _ in range(count):
            backlog, size = take()
            backlog.taken(size)

    def _watch_over(self, ready: StageReady) -> None:
        """Begin to notice when the worker hangs; called once, as it is ready."""
        self._watch = HangWatch(
            self._hang_timeout_s(),
            call_later=self._loop.call_later,
            ask=lambda: self._send(StagePing()),
            on_hang=self._hangs,
            look=self._step_look(ready),
        )

    def _hang_timeout_s(self) -> float:
        return self.config.hang_timeout_s

    def _step_look(self, ready: StageReady) -> Look:
        """How to see that nobody works on a step; by default not at all."""
        return cannot_tell

    def _watch_no_more(self) -> None:
        for watch in (self._watch, self._life):
            if watch is not None:
                watch.end()

    async def stop(self, timeout_s: float = 5.0) -> None:
        """End the worker, by force if it takes longer; no output comes from now on."""
        if not self._started:
            return
        self._alive = False
        self._stopping = True
        self._drained(len(self._waiting))
        self._watch_no_more()
        if not self._ready.done():
            self._ready.set_exception(StageStartError("the stage was stopped while it started"))
        self._send(StageStop())
        await self._finish(timeout_s)

    def _receive(self, message: FromWorker) -> None:
        match message:
            case StageOutput():
                if self._alive and message.request_id not in self._aborted:
                    self._on_output(message)
            case StageDrained():
                if self._alive:  # otherwise nothing is counted any more
                    self._drained(message.count)
            case StagePong() | StageAlive():
                watch = self._watch if isinstance(message, StagePong) else self._life
                if watch is not None:
                    watch.answered()
            case StageReady():
                self._is_ready(message)
            case StageFatal():
                self._report_end(message.error)

    def _is_ready(self, ready: StageReady) -> None:
        if not self._ready.done():
            self._alive = True
            self._watch_over(ready)
            self._ready.set_result(ready.load_s)

    def _hangs(self, reason: str) -> None:
        self._report_end(reason)
        self._abandon()

    def _report_end(self, reason: str) -> None:
        self._alive = False
        self._drained(len(self._waiting))
        self._watch_no_more()
        if self._stopping or self._reported:
            return
        self._reported = True
        if self._ready.done():
            logger.error("stage %s died: %s", self.config.name, reason)
            self._on_dead(reason)
        else:
            self._ready.set_exception(StageStartError(reason))

    def _worker_ended(self, reason: str) -> None:
        """The worker has gone, and all it sent has been received."""
        self._exited.set()
        self._report_end(reason)

    async def _has_exited(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    @abstractmethod
    async def _launch(self) -> None:
        """Bring the worker into being."""

    @abstractmethod
    def _send(self, message: ToWorker) -> None:
        """Queue a message for the worker; one that is gone already ignores it."""

    @abstractmethod
    def _abandon(self) -> None:
        """Get rid of a worker that hangs, as far as that is possible."""

    @abstractmethod
    async def _finish(self, timeout_s: float) -> None:
        """Wait for the worker to end, and make it."""

    @abstractmethod
    async def _discard(self) -> None:
        """Get rid of a worker that did not start."""


class ThreadStageClient(StageClient):
    """A worker in a thread of this process: for models that cost little, and for tests.

    A thread cannot be killed: one that hangs, or does not end when it is told to, is left behind
    with its memory, and logged.
    """

    async def _launch(self) -> None:
        self._inbox = Inbox()
        self._thread = threading.Thread(
            target=self._run, name=f"stage-{self.config.name}", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            run_worker(self.config, self._inbox, lambda message: self._post(self._receive, message))
        finally:
            self._post(self._worker_ended, "the worker's thread ended")

    def _post(self, callback: Callable[[T], None], argument: T) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, argument)
        except RuntimeError:  # the loop is closed: a thread that was left behind talks to nobody
            logger.warning("stage %s outlived its engine", self.config.name)

    def _send(self, message: ToWorker) -> None:
        if not isinstance(message, StageProbe):  # a thread that does not run cannot be told apart
            self._inbox.put(message)

    def _abandon(self) -> None:
        logger.error("the thread of stage %s hangs and is left behind", self.config.name)

    async def _finish(self, timeout_s: float) -> None:
        if await self._has_exited(timeout_s):
            self._thread.join()  # at once: telling so was the last thing it did
        else:
            logger.error("the thread of stage %s does not end", self.config.name)

    async def _discard(self) -> None:
        self._inbox.put(StageStop())
