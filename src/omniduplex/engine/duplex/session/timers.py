"""What comes true by the clock alone: noticed with every input, and when nothing else comes."""

from __future__ import annotations

from omniduplex.engine.duplex.session.continuation import Continuation
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.effects import SetTimer
from omniduplex.engine.duplex.session.input_lane import InputLane
from omniduplex.engine.duplex.session.output_lane import OutputLane


class Timers:
    """The one timer of a session, for all that waits; times in s of the session clock."""

    def __init__(
        self, core: SessionCore, listening: InputLane, output: OutputLane, more: Continuation
    ) -> None:
        self._core = core
        self._input = listening
        self._output = output
        self._continuation = more
        self._wake_at: float | None = None
        self._continued: str | None = None

    @property
    def _active_id(self) -> str | None:
        active = self._output.active
        return None if active is None else active.response_id

    def settle(self) -> None:
        """Notice what came true by now."""
        core = self._core
        if core.loudspeaker.settle(core.now, self._active_id):
            core.idle.answered(core.now)
        self._input.settle()
        self._output.settle()
        active_id = self._active_id
        if active_id != self._continued:
            self._continued = active_id
            self._continuation.begin()

    def set(self) -> None:
        """Be woken when there will be something to notice."""
        times = (
            self._core.loudspeaker.silent_at(self._active_id),
            self._idle_until(),
            self._output.deferred_until,
            self._silence_due_at(),
        )
        wake_at = min((at for at in times if at is not None), default=None)
        if wake_at != self._wake_at:
            self._wake_at = wake_at
            self._core.effects.append(SetTimer(wake_at))

    def _idle_until(self) -> float | None:
        core = self._core
        busy = self._output.busy or self._input.speaking or core.loudspeaker.playing
        return None if busy or core.lease.detached else core.idle.due_at(core.config)

    def _silence_due_at(self) -> float | None:
        is_open = self._output.active is not None or self._input.turn_is_open
        return self._continuation.due_at() if is_open and not self._input.waits else None

    def fired(self) -> None:
        """The time that was set has come."""
        self._wake_at = None
        if _is_over(self._idle_until(), self._core.now):
            self._input.time_out()
        if not _is_over(self._silence_due_at(), self._core.now):
            return
        if self._continuation.exhausted:
            self._continuation.end()
            self._output.end_at_limit()
        else:
            self._continuation.feed()


def _is_over(at: float | None, now: float) -> bool:
    return at is not None and now >= at
