"""Sessions that are over, and of which something may be left on a stage."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from omniduplex.telemetry.metrics import METRICS

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 0.1
"""After the first attempt that failed; each later pause is twice as long as the one before."""


@dataclass(slots=True)
class _Cleanup:
    """When (s of the session clock) to try again, and the pause (s) before that."""

    next_at: float
    pause_s: float


class ClosingSessions:
    """Cleans up after sessions, and tries again what failed, until nothing is left of them.

    A session that is held here holds its slot. It is let go as soon as an attempt succeeds, the
    latest when the workers that had something of it are gone: of those nothing is left to abort.
    `clean` raises whatever went wrong; pauses grow to `longest_pause_s`.
    """

    def __init__(
        self,
        clean: Callable[[str], None],
        *,
        clock: Callable[[], float],
        longest_pause_s: float,
    ) -> None:
        self._clean = clean
        self._clock = clock
        self._longest_pause_s = longest_pause_s
        self._held: dict[str, _Cleanup] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def next_at(self) -> float:
        """When (s) the next attempt is due; never is infinity."""
        return min((cleanup.next_at for cleanup in self._held.values()), default=math.inf)

    def end(self, session_id: str) -> bool:
        """Clean up after a session that has just ended; whether nothing is left of it."""
        try:
            self._clean(session_id)
        except Exception:
            logger.exception("session %s: cleaning up failed; it keeps its slot", session_id)
            pause_s = min(FIRST_RETRY_S, self._longest_pause_s)
            self._held[session_id] = _Cleanup(self._clock() + pause_s, pause_s)
            METRICS.session_cleanup_failures.inc()
        return self._counted(session_id)

    def stage_lost(self, session_id: str) -> bool:
        """A worker died that may have had something of this session; whether it is held here."""
        cleanup = self._held.get(session_id)
        if cleanup is not None:
            cleanup.next_at = self._clock()
        return cleanup is not None

    def retry(self) -> None:
        """Make the attempts that are due."""
        now = self._clock()
        for session_id, cleanup in tuple(self._held.items()):
            if cleanup.next_at <= now:
                self._try_again(session_id, cleanup, now)

    def _try_again(self, session_id: str, cleanup: _Cleanup, now: float) -> None:
        try:
            self._clean(session_id)
        except Exception as error:
            if cleanup.pause_s < self._longest_pause_s:  # or the log would never be done with it
                logger.warning("session %s: cleaning up failed again: %r", session_id, error)
            cleanup.pause_s = min(2 * cleanup.pause_s, self._longest_pause_s)
            cleanup.next_at = now + cleanup.pause_s
            METRICS.session_cleanup_failures.inc()
            return
        del self._held[session_id]
        logger.info("session %s: cleaned up, its slot is free", session_id)
        self._counted(session_id)

    def _counted(self, session_id: str) -> bool:
        METRICS.sessions_closing.set(len(self._held))
        return session_id not in self._held
