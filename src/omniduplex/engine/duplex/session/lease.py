"""How long a session lives without its client: idle time, disconnect grace, and its last hour."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.protocol.duplex import DuplexError

REMEMBERED_RESUMES = 16
"""How many resumes a repeated control id is answered for."""


@dataclass(slots=True)
class DuplexLease:
    """The lease of one session; all times in s of the session clock, which never goes back.

    `generation` counts the connections that took the session: whoever detaches or resumes it must
    name the current one, so that a connection that was replaced can do neither.
    """

    opened_at: float
    limits: DuplexSessionRuntimeConfig
    last_activity_at: float = field(init=False)
    generation: int = 0
    _detached_at: float | None = None
    _resumes: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _told: dict[str, float] = field(default_factory=dict)
    """When the end of each reason is to come that the client was told of last (s)."""

    def __post_init__(self) -> None:
        self.last_activity_at = self.opened_at

    @property
    def detached(self) -> bool:
        """Whether no connection has the session."""
        return self._detached_at is not None

    def touch(self, now: float) -> None:
        """Client or model did something."""
        self.last_activity_at = now

    def detach(self, expected_generation: int, now: float) -> None:
        """The connection of this generation is gone: the grace begins.

        Raises:
            DuplexError: `session_resume_conflict` when another connection has the session.
        """
        self._check(expected_generation)
        if self._detached_at is None:
            self._detached_at = now
        self.touch(now)

    def resume(self, expected_generation: int, control_id: str, now: float) -> int:
        """A connection takes the session; the new generation.

        The same `control_id` again is answered with the generation it made, so that a caller who
        missed the answer may ask again.

        Raises:
            DuplexError: `session_resume_conflict` when another connection was faster.
        """
        made = self._resumes.get(control_id)
        if made is not None:
            return made
        self._check(expected_generation)
        self.generation += 1
        self._detached_at = None
        self._resumes[control_id] = self.generation
        if len(self._resumes) > REMEMBERED_RESUMES:
            self._resumes.popitem(last=False)
        self.touch(now)
        return self.generation

    def _check(self, expected_generation: int) -> None:
        if expected_generation != self.generation:
            raise DuplexError(
                "session_resume_conflict",
                f"lease generation {expected_generation} is not the current {self.generation}",
            )

    def ending(self, idle_timeout_s: float, *, busy: bool) -> tuple[str, float] | None:
        """Why and when (s) this session ends if nothing happens; None: never."""
        endings = self.endings(idle_timeout_s, busy=busy)
        return endings[0] if endings else None

    def endings(self, idle_timeout_s: float, *, busy: bool) -> list[tuple[str, float]]:
        """All ends that are to come if nothing happens and when (s), the soonest first.

        `idle_timeout_s` is what the client asked for; a `busy` session is not idle.
        """
        endings: list[tuple[str, float]] = []
        if self._detached_at is not None:
            grace_ends = self._detached_at + self.limits.disconnect_grace_s
            endings.append(("disconnect_grace_expired", grace_ends))
        if self.limits.idle_ttl_s is not None and not busy:
            idle_s = min(self.limits.idle_ttl_s, idle_timeout_s)
            endings.append(("idle_ttl_expired", self.last_activity_at + idle_s))
        if self.limits.max_session_s is not None:
            endings.append(("session_expired", self.opened_at + self.limits.max_session_s))
        return sorted(endings, key=lambda ending: (ending[1], ending[0]))

    def warn_once(self, reason: str, at: float, now: float) -> bool:
        """True the first time that this end is nearer than the deployment's warning time.

        An end that activity puts off is another one. Of an idle time that is short anyway only the
        last quarter counts as near.
        """
        if self._is_told(reason, at) or now < at - self._near_s(reason, at):
            return False
        self._told[reason] = at
        return True

    def next_look_at(self, idle_timeout_s: float, *, busy: bool) -> float | None:
        """When an end is to be told or has come, if nothing happens before (s); as `endings`."""
        looks = [
            at if self._is_told(reason, at) else at - self._near_s(reason, at)
            for reason, at in self.endings(idle_timeout_s, busy=busy)
        ]
        return min(looks, default=None)

    def _is_told(self, reason: str, at: float) -> bool:
        return self._told.get(reason) == at

    def _near_s(self, reason: str, at: float) -> float:
        near_s = self.limits.expiry_warning_s
        if reason == "idle_ttl_expired":
            near_s = min(near_s, (at - self.last_activity_at) / 4)
        return near_s
