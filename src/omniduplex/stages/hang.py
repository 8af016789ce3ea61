"""Tells a worker that is busy from one that hangs, by asking it after each step."""

from __future__ import annotations

from collections.abc import Callable

from omniduplex.stages.timers import CallLater, Timer

# The wait is cut into as many parts: when this process itself was held up, at most the one part
# that ran meanwhile counts, and the worker's answer is read before the next one ends.
PARTS = 4


class HangWatch:
    """Asks a worker whether it has done what it was given, one question at a time.

    `ask` sends the question behind the work; `on_hang` is called, once, when no answer comes
    within `timeout_s`. A timeout of 0 asks nothing.
    """

    def __init__(
        self,
        timeout_s: float,
        *,
        call_later: CallLater,
        ask: Callable[[], None],
        on_hang: Callable[[], None],
    ) -> None:
        self._part_s = timeout_s / PARTS
        self._call_later = call_later
        self._ask = ask
        self._on_hang = on_hang
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
        self._parts_left = PARTS
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
        if self._parts_left:
            self._wait()
            return
        self.end()
        self._on_hang()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
