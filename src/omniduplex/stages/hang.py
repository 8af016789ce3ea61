"""Tells a worker that is busy from one that hangs, by asking it and by looking at it.

There are two questions. One goes behind the work and is answered when the work is done; the other
is answered at once, by a thread that does nothing else. Whoever owes an answer and is seen to do
nothing hangs, whatever the clock says; the first answer is also due in the time of the stage. What
a model's step may wait for decides what is seen: a stopped process always, one that sleeps only
where nothing but a deadlock explains it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from omniduplex.stages.stillness import LOOK_S, Look, Stillness
from omniduplex.stages.timers import CallLater, Timer

# The wait is cut into at least so many parts: when this process itself was held up, at most the one
# part that ran meanwhile counts, and the worker's answer is read before the next one ends.
PARTS = 4


def cannot_tell() -> None:
    """The look at a worker that nothing can be seen of."""
    return


class HangWatch:
    """Asks a worker whether it has done what it was given, one question at a time.

    `ask` sends the question behind the work; `on_hang` is called, once, when no answer comes
    within `timeout_s`, or when `look` shows before that nobody there is at work. A timeout of 0
    asks nothing.
    """

    def __init__(
        self,
        timeout_s: float,
        *,
        call_later: CallLater,
        ask: Callable[[], None],
        on_hang: Callable[[str], None],
        look: Look = cannot_tell,
    ) -> None:
        self._timeout_s = timeout_s
        self._parts = max(PARTS, math.ceil(timeout_s / LOOK_S))
        self._part_s = timeout_s / self._parts
        self._call_later = call_later
        self._ask = ask
        self._on_hang = on_hang
        self._stillness = Stillness(look)
        self._over = timeout_s == 0
        self._timer: Timer | None = None
        self._parts_left = 0
        self._more = False

    def given(self) -> None:
        """The worker was given something to do."""
        if self._over:
            return
        if self._timer is not None:
            self._more = True
            return
        self._ask()
        self._parts_left = self._parts
        self._stillness.begin()
        self._wait()

    def answered(self) -> None:
        """The worker has done what it was given before the question."""
        self._cancel()
        if self._more:
            self._more = False
            self.given()

    def end(self) -> None:
        """Ask no more: the worker ends, or has."""
        self._over = True
        self._cancel()

    def _wait(self) -> None:
        self._timer = self._call_later(self._part_s, self._part_passed)

    def _part_passed(self) -> None:
        self._parts_left -= 1
        if self._stillness.lasts():
            self._hangs("the worker's step waits for what does not come")
        elif self._parts_left:
            self._wait()
        else:
            self._hangs(f"the worker did not answer for {self._timeout_s:g} s")

    def _hangs(self, reason: str) -> None:
        self.end()
        self._on_hang(reason)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class LifeWatch:
    """Asks a process for a sign of life, again and again; a busy one may take as long as it likes.

    `on_dead` is called, once, when an answer is owed and `look` shows that nobody there stirs: the
    process is stopped, or its threads wait for each other.
    """

    def __init__(
        self,
        *,
        call_later: CallLater,
        ask: Callable[[], None],
        on_dead: Callable[[str], None],
        look: Look,
    ) -> None:
        self._call_later = call_later
        self._ask = ask
        self._on_dead = on_dead
        self._stillness = Stillness(look)
        self._answered = True
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Ask from now on."""
        self._look_again()

    def answered(self) -> None:
        """The sign of life has come."""
        self._answered = True

    def end(self) -> None:
        """Ask no more: the process ends, or has."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_again(self) -> None:
        if self._answered:
            self._answered = False
            self._stillness.begin()
            self._ask()
        elif self._stillness.lasts():
            self._on_dead("the worker's process is stopped, or its threads wait for each other")
            return
        self._timer = self._call_later(LOOK_S, self._look_again)
