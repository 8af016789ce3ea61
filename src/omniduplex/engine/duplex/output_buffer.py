"""The bounded buffer between a session on the engine's thread and the one reader of its events."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import UNSET

from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexEvent,
    ErrorEvent,
    ResponseDone,
    SessionClosed,
    SessionExpired,
)

# Errors and response endings may go this far beyond the limits (wire contract, section 10).
RESERVE_BYTES = 64 * 1024
RESERVE_EVENTS = 8
# JSON bytes of a closure with its identity; a larger one loses its details (same section).
MAX_CLOSURE_BYTES = 4096
CLOSE_DETAILS_EXCEED_LIMIT = "close_details_exceed_output_limit"

# Responses whose late audio is still refused. One is active at a time, so this is far more than
# what can be under way; the response of the event held by the reader is never forgotten.
MAX_CANCELLED_RESPONSES = 64

# As long as what the socket stamps on an event: a UUID in hex, and the largest exact JSON integer.
_LONGEST_EVENT_ID = "event_" + "0" * 32
_LONGEST_SEQ = 2**53

Closure = SessionClosed | SessionExpired
# Tuples, not unions: isinstance is asked of every event, and takes half the time.
_CLOSURES = (SessionClosed, SessionExpired)
_RESERVE_USERS = (ErrorEvent, ResponseDone)

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace


class EndOfEvents(Exception):  # noqa: N818 - reads as the state it reports
    """The closure was taken, or the reader left: no event follows."""


def wire_size(event: DuplexEvent) -> int:
    """Return the bytes of the event as compact JSON, before the socket stamps its identity.

    Exact for audio too, whose base64 is counted without being made.
    """
    if isinstance(event, AudioDelta):
        base64_chars = (len(event.delta) + 2) // 3 * 4
        return len(_encode(_replace(event, delta=b""))) + base64_chars
    return len(_encode(event))


def fit_closure(event: Closure) -> Closure:
    """Return the closure, without its details if they are larger than its slot."""
    stamped = _replace(
        event,
        event_id=_LONGEST_EVENT_ID if event.event_id is UNSET else event.event_id,
        server_event_seq=_LONGEST_SEQ,
    )
    if len(_encode(stamped)) <= MAX_CLOSURE_BYTES:
        return event
    if isinstance(event, SessionExpired):
        return _replace(event, reason=CLOSE_DETAILS_EXCEED_LIMIT)
    return SessionClosed(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        session_id=event.session_id,
        epoch=event.epoch,
        reason=CLOSE_DETAILS_EXCEED_LIMIT,
    )


class DuplexOutputBuffer:
    """Events of one session, in order, from one producer thread to one consumer on any loop.

    Bounded in JSON bytes and in events. The event last taken is the consumer's: it is outside of
    both limits, and must pass `deliverable` before it is written.
    """

    def __init__(self, *, max_bytes: int, max_events: int) -> None:
        self._max_bytes = max_bytes
        self._max_events = max_events
        self._lock = threading.Lock()
        self._queue: deque[tuple[DuplexEvent, int]] = deque()
        self._bytes = 0
        self._overflowed = False
        self._closure: Closure | None = None
        self._sealed = False  # closed or abandoned: whatever else is put is ignored
        self._cancelled: dict[str, None] = {}  # a set in order of insertion
        self._held_audio_of: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._eager: Callable[[], None] | None = None
        self._burst = False  # of the producer: the consumer is woken when it is over

    @property
    def overflowed(self) -> bool:
        """Whether an event was refused for want of room."""
        return self._overflowed

    @property
    def pending_bytes(self) -> int:
        """JSON bytes queued, the closure not counted."""
        return self._bytes

    @property
    def pending_events(self) -> int:
        """Events queued, the closure not counted."""
        return len(self._queue)

    def put(self, event: DuplexEvent) -> bool:
        """Queue an event; False only if it is lost to an overflow, this one or an earlier one.

        A closure goes to its own slot. What nobody may or wants to hear any more (audio of a
        cancelled response, anything after the closure or after the reader left) is ignored.
        """
        if isinstance(event, _CLOSURES):
            self.close(event)
            return True
        if self._sealed:
            return True
        may_use_reserve = isinstance(event, _RESERVE_USERS)
        if self._overflowed and not may_use_reserve:
            return False
        size = wire_size(event)
        with self._lock:
            if self._sealed or self._is_cancelled_audio(event):
                return True
            if not self._has_room(size, may_use_reserve):
                self._overflowed = True
                return False
            self._queue.append((event, size))
            self._bytes += size
            waiter = None if self._burst else self._release_waiter()
        self._wake(waiter)
        return True

    def begin_burst(self) -> None:
        """The producer puts several events now: the consumer need not see them one by one."""
        self._burst = True

    def end_burst(self) -> None:
        """Wake the consumer for what was put since `begin_burst`."""
        self._burst = False
        with self._lock:
            waiter = self._release_waiter() if self._queue else None
        self._wake(waiter)

    def close(self, event: Closure) -> None:
        """Make this the last event, after what is queued; only the first closure counts."""
        fitted = fit_closure(event)
        with self._lock:
            if self._sealed:
                return
            self._sealed = True
            self._closure = fitted
            waiter = self._release_waiter()
        self._wake(waiter)

    def cancel(self, response_id: str) -> None:
        """Take back this response's audio: queued, held by the reader, or still to be put."""
        with self._lock:
            self._cancelled[response_id] = None
            if len(self._cancelled) > MAX_CANCELLED_RESPONSES:
                held = self._held_audio_of
                del self._cancelled[next(name for name in self._cancelled if name != held)]
            self._queue = deque(
                entry for entry in self._queue if not self._is_cancelled_audio(entry[0])
            )
            self._bytes = sum(size for _, size in self._queue)

    def recover(self) -> None:
        """Take ordinary events again: what did not fit was given up, and made room."""
        self._overflowed = False

    def deliverable(self, event: DuplexEvent) -> bool:
        """Whether an event already taken may still be written; ask right before writing it."""
        with self._lock:
            return not self._is_cancelled_audio(event)

    def listen(self, eager: Callable[[], None] | None) -> None:
        """Call this on the consumer's loop for events that come while `get` waits; None: nothing.

        It may `take` them, which saves the waking of a task; `get` goes on with what it leaves.
        """
        self._eager = eager

    def take(self) -> DuplexEvent | None:
        """Take the next event if there is one; it is deliverable now."""
        with self._lock:
            return self._take()

    async def get(self) -> DuplexEvent:
        """Take the next event; cancelling this loses none.

        Raises:
            EndOfEvents: there will be none.
            RuntimeError: another consumer is waiting.
        """
        while True:
            with self._lock:
                event = self._take()
                if event is not None:
                    return event
                if self._sealed:
                    raise EndOfEvents
                if self._waiter is not None:
                    raise RuntimeError("a session's events have one consumer")
                waiter = self._waiter = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                with self._lock:
                    if self._waiter is waiter:
                        self._waiter = None

    def abandon(self) -> None:
        """Nobody reads any more: forget what is queued and ignore whatever comes."""
        with self._lock:
            self._sealed = True
            self._closure = None
            self._queue.clear()
            self._bytes = 0
            waiter = self._release_waiter()
        self._wake(waiter)

    def _take(self) -> DuplexEvent | None:
        event: DuplexEvent | None
        if self._queue:
            event, size = self._queue.popleft()
            self._bytes -= size
        else:
            event, self._closure = self._closure, None
        self._held_audio_of = event.response_id if isinstance(event, AudioDelta) else None
        return event

    def _has_room(self, size: int, may_use_reserve: bool) -> bool:
        max_bytes, max_events = self._max_bytes, self._max_events
        if may_use_reserve:
            max_bytes += RESERVE_BYTES
            max_events += RESERVE_EVENTS
        return self._bytes + size <= max_bytes and len(self._queue) < max_events

    def _is_cancelled_audio(self, event: DuplexEvent) -> bool:
        return isinstance(event, AudioDelta) and event.response_id in self._cancelled

    def _release_waiter(self) -> asyncio.Future[None] | None:
        waiter, self._waiter = self._waiter, None
        return waiter

    def _wake(self, waiter: asyncio.Future[None] | None) -> None:
        """Wake a waiting consumer; outside the lock, because it is a system call."""
        if waiter is None:
            return
        try:
            waiter.get_loop().call_soon_threadsafe(self._resolve, waiter)
        except RuntimeError:  # how asyncio and uvloop refuse work for a closed loop
            self.abandon()

    def _resolve(self, waiter: asyncio.Future[None]) -> None:
        if waiter.done():
            return
        if self._eager is not None:
            self._eager()
            with self._lock:
                if not self._queue and not self._sealed:
                    self._waiter = waiter
                    return
        waiter.set_result(None)
