"""What a session has sent and its client may not have got: kept for a replay, within limits."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from omniduplex.protocol.duplex import DuplexError


class JournalGap(Exception):  # noqa: N818 - reads as the state it reports
    """A complete replay is not possible: some of it was dropped. Carries the journal's head."""

    def __init__(self, head: int) -> None:
        super().__init__(head)
        self.head = head


def check_ack(seq: int, head: int) -> None:
    """Refuse (`invalid_event_ack`) an acknowledgement of what was never sent."""
    if not 0 <= seq <= head:
        raise DuplexError(
            "invalid_event_ack",
            f"Event {seq} was not sent; the last one was {head}.",
            param="server_event_seq",
        )


class _Entry(NamedTuple):
    seq: int
    text: str
    size: int
    recorded_at: float


class EventJournal:
    """The newest events of one session as they went over the wire, oldest first.

    Beyond its limits it drops the oldest, so a client that never acknowledges costs bounded
    memory; only a resume from before the drop fails. An acknowledgement of everything dropped
    makes it complete again. It begins behind the event `head`. Times are s of one monotonic clock.
    """

    def __init__(self, *, max_bytes: int, ttl_s: float, head: int = 0) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._head = head
        self._floor = head  # everything up to here is gone: acknowledged, dropped or never kept

    @property
    def head(self) -> int:
        """Sequence number of the newest event, held or not."""
        return self._head

    @property
    def held_bytes(self) -> int:
        """UTF-8 bytes of the events held."""
        return self._bytes

    def record(self, seq: int, text: str, now: float) -> None:
        """Keep an event; its number is one above the head."""
        if seq != self._head + 1:
            raise ValueError(f"event {seq} does not follow {self._head}")
        size = len(text) if text.isascii() else len(text.encode())
        self._head = seq
        self._entries.append(_Entry(seq, text, size, now))
        self._bytes += size
        self._drop_expired(now)
        while self._bytes > self._max_bytes:
            self._drop_oldest()

    def ack(self, seq: int) -> None:
        """Forget everything up to this event.

        Raises:
            DuplexError: `invalid_event_ack`, when it was never sent.
        """
        check_ack(seq, self._head)
        while self._entries and self._entries[0].seq <= seq:
            self._drop_oldest()
        self._floor = max(self._floor, seq)

    def replay_after(self, seq: int, now: float) -> list[str]:
        """Return every event behind this one, in order.

        Raises:
            DuplexError: `session_resume_conflict`, when `seq` was never sent.
            JournalGap: some of them are gone.
        """
        self._drop_expired(now)
        if seq > self._head:
            raise DuplexError(
                "session_resume_conflict",
                f"Event {seq} was not sent; the last one was {self._head}.",
                param="last_received_server_event_seq",
            )
        if seq < self._floor:
            raise JournalGap(self._head)
        return [entry.text for entry in self._entries if entry.seq > seq]

    def _drop_expired(self, now: float) -> None:
        while self._entries and now - self._entries[0].recorded_at > self._ttl_s:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        entry = self._entries.popleft()
        self._bytes -= entry.size
        self._floor = entry.seq
