"""Which events have arrived, which are missing, and when to tell the server: in batches."""

from __future__ import annotations

# The server keeps unacknowledged events for a replay: small batches keep that journal short,
# and one command per batch instead of one per event keeps the way up free.
BATCH_EVENTS = 64
BATCH_S = 0.2


class AckLedger:
    """Sequence numbers seen, and the highest one not yet acknowledged.

    `last_seen` is where another connection left off, for a client that takes over from it.
    """

    def __init__(self, last_seen: int = 0) -> None:
        self._last_seen = last_seen
        self._waiting = 0
        self._missed = 0
        self._ahead: set[int] = set()
        self._acknowledged = last_seen
        self._exported: int | None = None

    @property
    def last_seen(self) -> int:
        """Up to here a replay has nothing new."""
        return self._last_seen

    @property
    def waiting(self) -> int:
        """How many events the next acknowledgement covers."""
        return self._waiting

    @property
    def missed(self) -> int:
        """How many numbers were jumped over: events that will not come any more."""
        return self._missed

    def see(self, seq: int) -> bool:
        """Note an event; False when it has been seen before."""
        if seq <= self._last_seen or seq in self._ahead:
            return False
        jumped = sum(self._last_seen < number < seq for number in self._ahead)
        self._missed += seq - self._last_seen - 1 - jumped
        self._reach(seq)
        return True

    def see_ahead(self, seq: int) -> bool:
        """Note an event that comes before those it follows by number, as one before a replay."""
        if seq <= self._last_seen or seq in self._ahead:
            return False
        self._ahead.add(seq)
        self._waiting += 1
        self._catch_up()
        return True

    def export(self) -> int:
        """Where another client may go on from: what follows is not acknowledged any more.

        The server would drop it, and could not replay it to that client; the next export moves on.
        """
        self._exported = self._last_seen
        return self._exported

    def take(self) -> int | None:
        """The number to acknowledge now, or None when there is nothing new."""
        self._waiting = 0
        seq = self._last_seen if self._exported is None else self._exported
        if seq <= self._acknowledged:
            return None
        self._acknowledged = seq
        return seq

    def _reach(self, seq: int) -> None:
        self._last_seen = seq
        self._waiting += 1
        self._ahead = {number for number in self._ahead if number > seq}
        self._catch_up()

    def _catch_up(self) -> None:
        while self._last_seen + 1 in self._ahead:
            self._last_seen += 1
            self._ahead.remove(self._last_seen)
