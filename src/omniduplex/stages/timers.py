"""What is asked of an event loop's clock, so that a test may be the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is due later; `asyncio.TimerHandle` is one."""

    def cancel(self) -> None:
        """Let it not happen."""


CallLater = Callable[[float, Callable[[], None]], Timer]
"""Has a function called after so many seconds, as an event loop's `call_later` does."""
