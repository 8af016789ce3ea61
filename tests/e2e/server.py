"""`omniduplex serve` in a process of its own, as a person starts it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

START_TIMEOUT_S = 200.0
STOP_TIMEOUT_S = 60.0

_LISTENS = re.compile(r'base_url="http://(\S+?)/v1"')


class Server:
    """A server that listens at `address` (host:port); `log` is all that it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[str] = []
        self._address: Future[str] = Future()
        assert process.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(process.stderr,), name="log")
        self._reader.start()

    @property
    def address(self) -> str:
        return self._address.result(START_TIMEOUT_S)

    @property
    def url(self) -> str:
        return f"ws://{self.address}"

    @property
    def http(self) -> str:
        return f"http://{self.address}"

    def family(self) -> list[int]:
        """The process ids of the server and of all its descendants."""
        found = [self.process.pid]
        for pid in found:  # it grows while we walk it
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                with suppress(FileNotFoundError):  # a thread that has just ended
                    found += map(int, children.read_text("ascii").split())
        return found

    def stop(self) -> int:
        """Ask it to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._reader.join(STOP_TIMEOUT_S)
        return code

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self.log.append(line)
            if not self._address.done() and (listens := _LISTENS.search(line)):
                self._address.set_result(listens[1])
        if not self._address.done():
            told = "".join(self.log)
            self._address.set_exception(RuntimeError(f"the server did not start:\n{told}"))


def ends(pid: int) -> bool:
    """Whether a process is gone, or goes now: Python's own helpers follow their parent."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        gone, _, _ = select.select([process], [], [], STOP_TIMEOUT_S)
        return bool(gone)
    finally:
        os.close(process)


@contextmanager
def serve(*arguments: str) -> Iterator[Server]:
    """Start `omniduplex serve` on a free loopback port, and end it after the block."""
    command: Sequence[str] = [
        sys.executable,
        "-m",
        "omniduplex.entrypoints.cli.main",
        "serve",
        *arguments,
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        server = Server(process)
        try:
            assert server.address
            yield server
        finally:
            server.stop()


@contextmanager
def serve_scripted(chat_url: str, folder: Path) -> Iterator[Server]:
    """The embedded model, whose language model is the chat endpoint at this URL."""
    deploy = folder / "deploy.yaml"
    deploy.write_text(f"""
pipeline: local
stages:
  - stage_id: 0
    options:
      language_model: {{type: remote, base_url: "{chat_url}", model: scripted}}
""")
    with serve("--deploy-config", str(deploy)) as server:
        yield server
