"""A stage worker in a process of its own: started, watched over, and ended."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import partial

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.client import START_TIMEOUT_S, StageClient
from omniduplex.stages.errors import StageStartError
from omniduplex.stages.hang import LifeWatch
from omniduplex.stages.messages import FromWorker, StageProbe, StageReady, ToWorker
from omniduplex.stages.stillness import Look, look_at, look_for_a_stop
from omniduplex.stages.transport import FrameProtocol
from omniduplex.telemetry.logging import current_settings

logger = logging.getLogger(__name__)

# After the process is gone its socket ends at once, unless a child of it holds a copy.
EOF_TIMEOUT_S = 1.0


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

    def _watch_over(self, ready: StageReady) -> None:
        super()._watch_over(ready)
        if self._process is None or self._hang_timeout_s() == 0:
            return
        self._life = LifeWatch(
            call_later=self._loop.call_later,
            ask=lambda: self._send(StageProbe()),
            on_dead=self._hangs,
            look=self._life_look(self._process.pid, ready),
        )
        self._life.begin()

    def _life_look(self, pid: int, ready: StageReady) -> Look:
        """How to see that nobody will ever answer."""
        if ready.sleepless:
            return partial(look_at, pid, ready.answering)
        # A step that waits for a device may keep Python's lock, and with it whoever would answer.
        return partial(look_for_a_stop, pid)

    def _step_look(self, ready: StageReady) -> Look:
        if self._process is None or not ready.sleepless:
            return super()._step_look(ready)
        return partial(look_at, self._process.pid, ready.answering)

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
