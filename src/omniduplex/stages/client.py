"""The engine's side of one stage worker, the same for a process and for a thread."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.errors import StageOverloaded, StageStartError, StageUnavailable
from omniduplex.stages.hang import HangWatch
from omniduplex.stages.messages import (
    FromWorker,
    StageAbort,
    StageDrained,
    StageFatal,
    StageInput,
    StageMessage,
    StageOutput,
    StagePing,
    StagePong,
    StageReady,
    StageStop,
    ToWorker,
)
from omniduplex.stages.transport import FrameProtocol
from omniduplex.stages.worker import AbortedRequests, Inbox, run_worker
from omniduplex.telemetry.logging import current_settings

logger = logging.getLogger(__name__)

T = TypeVar("T")
OnOutput = Callable[[StageOutput], None]
OnDead = Callable[[str], None]

START_TIMEOUT_S = 120.0
# After the process is gone its socket ends at once, unless a child of it holds a copy.
EOF_TIMEOUT_S = 1.0


class StageClient(ABC):
    """One worker of a stage, started once; everything here happens on the loop of `start`."""

    def __init__(self, config: StageConfig, *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        self.config = config
        self._start_timeout_s = start_timeout_s
        self._aborted = AbortedRequests()
        self._waiting = 0
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
        self._watch = HangWatch(
            self._hang_timeout_s(),
            call_later=self._loop.call_later,
            ask=lambda: self._send(StagePing()),
            on_hang=self._hangs,
        )
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

    def submit(self, message: StageMessage) -> None:
        """Give the worker an input or an abort; never blocks.

        After an abort returns, nothing more comes out for its requests. An input waits from here
        until the worker takes it for its next step, wherever it is in between.

        Raises:
            StageUnavailable: the worker is not ready, or not any more.
            StageOverloaded: `max_queue` inputs wait already. Aborts are always taken.
        """
        if not self._alive:
            raise StageUnavailable(f"stage {self.config.name!r} is not running")
        if isinstance(message, StageAbort):
            self._aborted.add(message.request_ids)
        elif self._waiting >= self.config.max_queue:
            raise StageOverloaded(
                f"{self._waiting} inputs wait for stage {self.config.name!r} already"
            )
        self._send(message)
        self._waiting += isinstance(message, StageInput)
        self._watch.given()

    def _hang_timeout_s(self) -> float:
        return self.config.hang_timeout_s

    async def stop(self, timeout_s: float = 5.0) -> None:
        """End the worker, by force if it takes longer; no output comes from now on."""
        if not self._started:
            return
        self._alive = False
        self._stopping = True
        self._watch.end()
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
                self._waiting -= message.count
            case StagePong():
                self._watch.answered()
            case StageReady():
                if not self._ready.done():
                    self._alive = True
                    self._ready.set_result(message.load_s)
            case StageFatal():
                self._report_end(message.error)

    def _hangs(self) -> None:
        self._report_end(f"the worker did not answer for {self.config.hang_timeout_s:g} s")
        self._abandon()

    def _report_end(self, reason: str) -> None:
        self._alive = False
        self._watch.end()
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


class ProcessStageClient(StageClient):
    """A worker in a process of its own, which ends when this process does."""

    def __init__(self, config: StageConfig, *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        super().__init__(config, start_timeout_s=start_timeout_s)
        self._process: subprocess.Popen[bytes] | None = None
        self._protocol: FrameProtocol | None = None
        self._connected = False
        self._exit_status: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def _launch(self) -> None:
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                _, self._protocol = await self._loop.create_unix_connection(
                    lambda: FrameProtocol(FromWorker, self._receive, self._connection_lost),
                    sock=ours,
                )
                self._connected = True
                self._process = self._spawn(theirs.fileno())
        except OSError as error:
            if self._protocol:
                self._protocol.abort()
            raise StageStartError(f"cannot start a process: {error}") from error
        self._protocol.send(self.config)
        threading.Thread(
            target=self._wait_for_exit,
            args=(self._process,),
            name=f"stage-{self.config.name}-exit",
            daemon=True,
        ).start()

    def _spawn(self, worker_socket: int) -> subprocess.Popen[bytes]:
        log = current_settings()
        command = [sys.executable, "-P", "-m", "omniduplex.stages.worker", self.config.name]
        command += ["--socket", str(worker_socket), "--log-level", str(log.level)]
        if log.json_lines:
            command.append("--log-json")
        # Whatever class this process can import, its worker can.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=[worker_socket],
            env={**os.environ, "PYTHONPATH": path},
        )

    def _wait_for_exit(self, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        try:
            self._loop.call_soon_threadsafe(self._process_exited, status)
        except RuntimeError:
            logger.warning("stage %s outlived its engine", self.config.name)

    def _process_exited(self, status: int) -> None:
        self._exit_status = status
        if self._protocol:
            self._loop.call_later(EOF_TIMEOUT_S, self._protocol.abort)
        self._settle()

    def _connection_lost(self) -> None:
        self._connected = False
        self._alive = False
        if not self._stopping and self._process:
            self._process.kill()  # without its socket it is of no use; no-op if it has exited
        self._settle()

    def _settle(self) -> None:
        if self._exit_status is not None and not self._connected:
            self._worker_ended(describe_exit(self._exit_status))

    def _send(self, message: ToWorker) -> None:
        if self._protocol:
            self._protocol.send(message)

    def _abandon(self) -> None:
        if self._process:
            self._process.kill()

    async def _finish(self, timeout_s: float) -> None:
        if self._process is None or await self._has_exited(timeout_s):
            return
        # A worker heeds no signal but this one: others are for its parent to act upon.
        logger.warning("stage %s did not stop in %s s: killed", self.config.name, timeout_s)
        await self._discard()

    async def _discard(self) -> None:
        if self._process:
            self._process.kill()
            await self._exited.wait()


def describe_exit(status: int) -> str:
    """In words, what `subprocess.Popen.returncode` says."""
    if status < 0:
        return f"the worker was killed by {signal.Signals(-status).name}"
    return f"the worker exited with status {status}"
