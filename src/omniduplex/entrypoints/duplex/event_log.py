"""One session's events as they leave: in its client's dialect, numbered, rendered once, kept."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import msgspec
from prometheus_client import Counter

from omniduplex.entrypoints.duplex.journal import EventJournal, check_ack
from omniduplex.protocol.duplex import (
    DUPLEX_EXTENSION,
    Dialect,
    DuplexError,
    DuplexEvent,
    SessionUpdated,
    encode_event,
    project,
)
from omniduplex.telemetry.metrics import METRICS


@functools.cache
def _sent(kind: type[msgspec.Struct]) -> Counter:
    return METRICS.events.labels(type=kind.__struct_config__.tag)


class SessionEventLog:
    """The only place where a session's sequence numbers are given out.

    Whatever is numbered here must be written in this order.
    """

    def __init__(
        self, dialect: Dialect, *, new_id: Callable[[], str], clock: Callable[[], float]
    ) -> None:
        self.dialect = dialect
        self.journal: EventJournal | None = None
        self._new_id = new_id
        # 24 random digits for the session, 8 that count: as long as a UUID, without a system call.
        self._id_prefix = f"event_{new_id()[:24]}"
        self._ids = itertools.count(1)
        self._clock = clock
        self._head = 0
        self._is_opened = False

    @property
    def head(self) -> int:
        """Sequence number of the session's newest event."""
        return self._head

    def append(self, event: DuplexEvent, *, kept: DuplexEvent | None = None) -> str | None:
        """Give an event its place and return its text; None when the dialect does not show it.

        The update that grants the duplex extension is the first event in the duplex dialect.

        `kept` goes to the journal in its stead: what is said once only is not replayed.
        """
        if isinstance(event, SessionUpdated) and self._hides(event):
            return None
        event_id = f"{self._id_prefix}{next(self._ids):08x}"
        text = _render(event, self.dialect, event_id, self._head + 1)
        if text is None:
            return None
        self._head += 1
        _sent(type(event)).inc()
        if self.journal is not None:
            replay = text if kept is None else _render(kept, self.dialect, event_id, self._head)
            self.journal.record(self._head, replay or "", self._clock())
        return text

    def _hides(self, updated: SessionUpdated) -> bool:
        """Whether nobody asked for this update: the API knows none that opens a session.

        A client that begins when its settings hold would take it for the answer to its own.
        """
        opens, self._is_opened = not self._is_opened, True
        if DUPLEX_EXTENSION in updated.session.extensions:
            self.dialect = Dialect.DUPLEX
        return opens and self.dialect is not Dialect.DUPLEX

    def render_at(self, event: DuplexEvent, seq: int) -> str | None:
        """Return the text of an event about one connection, which takes no place of its own."""
        return render_alone(event, self.dialect, seq=seq, new_id=self._new_id)

    def ack(self, seq: int) -> None:
        """The client has everything up to this event. Raises DuplexError, `invalid_event_ack`."""
        check_ack(seq, self._head)
        if self.journal is not None:
            self.journal.ack(seq)

    def replay_after(self, seq: int) -> list[str]:
        """Return the texts behind an event; raises as `EventJournal.replay_after`."""
        if self.journal is None:
            raise DuplexError("unsupported_session_resume", "This session keeps no journal.")
        return self.journal.replay_after(seq, self._clock())


def render_alone(
    event: DuplexEvent, dialect: Dialect, *, seq: int, new_id: Callable[[], str]
) -> str | None:
    """Return the text of an event that no session keeps; None when the dialect has none."""
    return _render(event, dialect, f"event_{new_id()}", seq)


def _render(event: DuplexEvent, dialect: Dialect, event_id: str, seq: int) -> str | None:
    projected = project(event, dialect)
    return None if projected is None else encode_event(projected, event_id=event_id, seq=seq)
