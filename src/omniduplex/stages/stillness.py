"""Tells a process in which nobody does anything from one that is busy, or waits for a processor.

A clock cannot: on a loaded machine a healthy process may not run for a second. The kernel can, as
it knows of each thread whether it runs or wants to, and how often it went to sleep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

LOOK_S = 0.15
"""Seconds between two looks at a worker that owes an answer."""
STILL_LOOKS = 3
"""Looks in a row that must find what the look before them found: 0.6 s after the question."""

# proc(5): running or ready to; waiting for a disk.
_STIRRING = frozenset(b"RD")
# By a signal; by a debugger.
_STOPPED = frozenset(b"Tt")
_STATE, _SWITCHES = b"State", (b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")


class Seen(NamedTuple):
    """What the threads of a process do, and have done so far.

    `sleeps` is how often each thread that works was put to sleep so far; `works` whether one
    of them runs, wants to run, or waits for a disk, and `answers` whether one of the others does,
    which are woken by being asked and by the interpreter's lock.
    """

    sleeps: tuple[tuple[int, int], ...]
    works: bool
    answers: bool


Look = Callable[[], Seen | None]
"""What there is to see now; None when it cannot be told."""


def look_at(pid: int, answering: Collection[int] = ()) -> Seen | None:
    """See what a process does (Linux); None without `/proc`, or when the process is gone."""
    threads = _threads(pid)
    if threads is None:
        return None
    stirring = {thread.id for thread in threads if thread.state in _STIRRING}
    others = stirring.intersection(answering)
    sleeps = sorted((thread.id, thread.sleeps) for thread in threads if thread.id not in answering)
    return Seen(tuple(sleeps), works=stirring != others, answers=bool(others))


def look_for_a_stop(pid: int) -> Seen | None:
    """See only whether a process is stopped (Linux): one that sleeps counts as at work.

    None without `/proc`, or when the process is gone.
    """
    threads = _threads(pid)
    if threads is None:
        return None
    works = any(thread.state not in _STOPPED for thread in threads)
    return Seen((), works=works, answers=False)


class _Thread(NamedTuple):
    id: int
    state: int
    sleeps: int


def _threads(pid: int) -> list[_Thread] | None:
    try:
        return [_read(folder) for folder in Path(f"/proc/{pid}/task").iterdir()]
    except (OSError, KeyError):
        return None


def _read(folder: Path) -> _Thread:
    lines = (folder / "status").read_bytes().splitlines()
    facts = dict(line.split(b":\t", 1) for line in lines if b":\t" in line)
    sleeps = sum(int(facts[name]) for name in _SWITCHES)
    return _Thread(int(folder.name), facts[_STATE][0], sleeps)


class Stillness:
    """Counts the looks at which nothing has happened since the one before."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.begin()

    def begin(self) -> None:
        """Forget what was seen."""
        self._last: Seen | None = None
        self._count = 0

    def lasts(self) -> bool:
        """Look once more: whether nobody has worked for `STILL_LOOKS` looks in a row.

        A look at which somebody may be about to answer does not count.
        """
        last, seen = self._last, self._look()
        self._last = seen
        if seen is None or last is None or seen.works or last.works or seen.sleeps != last.sleeps:
            self._count = 0
        elif not seen.answers:
            self._count += 1
        return self._count >= STILL_LOOKS
