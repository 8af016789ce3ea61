"""What the kernel says about a process and its descendants (Linux)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SETTLE_TIMEOUT_S = 60.0


def resident_bytes(pid: int) -> int:
    """The memory of a process that is in RAM (proc(5), statm, field 2)."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * PAGE_BYTES


def cpu_s(pid: int) -> float:
    """The seconds of CPU that a process has used (proc(5), stat, fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files(pid: int) -> int:
    """File descriptors of a process."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    """Threads of a process."""
    return len(os.listdir(f"/proc/{pid}/task"))


def settles(measure: Callable[[], int], expected: int) -> bool:
    """Whether a count comes back to what it was."""
    return comes_true(lambda: measure() <= expected)


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether something comes about; waits no longer than it must."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.002)
    return True
