"""Log lines on their way out: whoever logs never waits for whoever reads."""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable

# At 200 bytes a line, 1.6 MB wait at most.
MAX_LINES = 8192
# How long the end of the process waits for a reader.
FLUSH_TIMEOUT_S = 1.0
STDERR = 2

Write = Callable[[str], None]
"""Writes text and may block; raises OSError when it cannot."""


def write_to_stderr(text: str) -> None:
    """Write to the descriptor itself: no lock of Python's is held while nobody reads."""
    left = text.encode(errors="backslashreplace")
    while left:
        left = left[os.write(STDERR, left) :]


class QueuedHandler(logging.Handler):
    """Hands lines to a thread that writes them; one that finds no room is dropped and counted."""

    def __init__(self, write: Write, *, max_lines: int = MAX_LINES) -> None:
        super().__init__()
        self._write = write
        self._lines: queue.Queue[str] = queue.Queue(max_lines)
        self._dropped = 0
        threading.Thread(target=self._run, name="log-writer", daemon=True).start()

    @property
    def dropped(self) -> int:
        """Lines that were not written so far, for want of room or because the write failed."""
        return self._dropped

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line; returns at once."""
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._dropped += 1
        except Exception:  # as in every handler: a line that cannot be made breaks nobody's work
            self.handleError(record)

    def flush(self) -> None:
        """Wait until all is written, or the time is over."""
        lines = self._lines
        with lines.all_tasks_done:
            lines.all_tasks_done.wait_for(lambda: not lines.unfinished_tasks, FLUSH_TIMEOUT_S)

    def _run(self) -> None:
        told = 0
        while True:
            written = self._try(self._lines.get())
            missing = self._dropped - told
            if written and missing:
                told += missing
                self._try(f"{missing} log lines are missing here: nobody took them")
            self._lines.task_done()

    def _try(self, line: str) -> bool:
        try:
            self._write(f"{line}\n")
        except OSError:
            self._dropped += 1
            return False
        return True


def dropped_lines() -> int:
    """Lines that the handlers of this process have dropped."""
    handlers = logging.getLogger().handlers
    return sum(handler.dropped for handler in handlers if isinstance(handler, QueuedHandler))
