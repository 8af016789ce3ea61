"""A server in a process of its own: started, found, measured and ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

# Both servers of the benchmarks say where they listen in a line that ends with this.
_READY = re.compile(r"(?:browser|baseline)\s+(\S+?)/?\s*$")
STOP_TIMEOUT_S = 20.0
KEPT_LINES = 30


class ServerStartError(Exception):
    """A server ended before it listened."""


class ServerProcess:
    """A running server; `url` is its base URL (ws://)."""

    def __init__(self, pid: int, url: str) -> None:
        self.pid = pid
        self.url = url

    def cpu_seconds(self) -> float:
        """User and system seconds of the process and all that live of its descendants (Linux)."""
        return sum(_cpu_seconds(pid) for pid in _family(self.pid))


@contextmanager
def serve(command: Sequence[str]) -> Iterator[ServerProcess]:
    """Run a command that serves, until the block ends.

    An error that leaves the block takes along what the server logged, as a note.

    Raises:
        ServerStartError: it ended without listening.
    """
    lines: deque[str] = deque(maxlen=KEPT_LINES)
    try:
        with _running(command, lines) as server:
            yield server
    except Exception as error:
        error.add_note("".join(lines).rstrip())
        raise


@contextmanager
def _running(command: Sequence[str], lines: deque[str]) -> Iterator[ServerProcess]:
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        listening: Future[str] = Future()
        # The pipe is read to its end: one that is full would stop the server in a log line.
        reader = threading.Thread(target=_read_log, args=(process.stderr, lines, listening))
        reader.start()
        try:
            yield ServerProcess(process.pid, listening.result().replace("http", "ws", 1))
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
            reader.join()


def _read_log(log: IO[str], lines: deque[str], listening: Future[str]) -> None:
    for line in log:
        lines.append(line)
        if not listening.done() and (found := _READY.search(line)):
            lines.clear()  # what it says on its way up is no sign of trouble
            listening.set_result(found[1])
    if not listening.done():
        listening.set_exception(ServerStartError("the server ended before it listened"))


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for parent in found:  # it grows while we walk it
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(FileNotFoundError):  # a thread that has just ended
                found += map(int, children.read_text("ascii").split())
    return found


def _cpu_seconds(pid: int) -> float:
    # The name, in parentheses, may hold anything; utime and stime are fields 14 and 15 (proc(5)).
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
