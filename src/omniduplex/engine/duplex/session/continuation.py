"""Silence for a model whose clock is its input, while it speaks and its user sends nothing."""

from __future__ import annotations

from omniduplex.audio.pcm import byte_count
from omniduplex.engine.duplex.session.core import SessionCore

# Wire contract, section 8.4.
MAX_UNITS = 8
MAX_UNITS_BY_ITSELF = 64


class Continuation:
    """One unit of silence a chunk period, counted from the last audio that the model got.

    A model that answers by itself gets so many that it can end what it says, and is told to listen
    with the last one; where its client ends turns, a few. Times in s of the session clock.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._period_s = core.capabilities.chunk_period_ms / 1000
        self._last_at = core.opened_at
        self._units = 0
        self._ended = False
        self.fed_ms = 0.0
        """How much silence of its own the model got."""

    @property
    def _limit(self) -> int:
        return MAX_UNITS_BY_ITSELF if self._core.config.auto_response else MAX_UNITS

    @property
    def exhausted(self) -> bool:
        """Whether the model had all the silence that it gets."""
        return self._units >= self._limit

    def begin(self) -> None:
        """An answer began, or ended: whatever comes next has its own count."""
        self._units = 0
        self._ended = False

    def fed(self) -> None:
        """The model got what its user sent, which supersedes silence."""
        self._last_at = self._core.now
        self.begin()

    def due_at(self) -> float | None:
        """When the next unit is due, or the end of an answer that had them all; None: never.

        Where its client ends turns, an answer may take longer than it is kept going.
        """
        if self._ended or not self._core.plugin.needs_clocked_input:
            return None
        if self.exhausted and not self._core.config.auto_response:
            return None
        return self._last_at + self._period_s

    def feed(self) -> None:
        """A unit is due: feed it; a schedule that is late by more than a period begins anew."""
        core = self._core
        due_at = self._last_at + self._period_s
        late = core.now - due_at > self._period_s
        self._last_at = core.now if late else due_at
        self._units += 1
        unit = bytes(byte_count(core.capabilities.chunk_period_ms, core.plugin.input_rate_hz))
        self.fed_ms += core.capabilities.chunk_period_ms
        last = self.exhausted and core.config.auto_response
        core.run(core.model.plan_append(core.fence, unit, force_listen=last))

    def end(self) -> None:
        """The model went on for too long without its user."""
        self._ended = True
