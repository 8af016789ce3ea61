"""When to tell the server which events have arrived: in batches, and how large."""

from __future__ import annotations

# The server keeps unacknowledged events for a replay: small batches keep that journal short,
# and one command per batch instead of one per event keeps the way up free.
BATCH_EVENTS = 64
BATCH_S = 0.2


class AckLedger:
    """Sequence numbers seen, and the highest one not yet acknowledged."""

    def __init__(self) -> None:
        self._last_seen = 0
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many events the next acknowledgement covers."""
        return self._waiting

    def see(self, seq: int) -> bool:
        """Note an event; False when it has been seen before."""
        if seq <= self._last_seen:
            return False
        self._last_seen = seq
        self._waiting += 1
        return True

    def take(self) -> int | None:
        """The number to acknowledge now, or None when there is nothing new."""
        if not self._waiting:
            return None
        self._waiting = 0
        return self._last_seen
