"""The bounded buffer between a session on the engine's thread and the one reader of its events."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import UNSET

from omniduplex.engine.conversation.endings import BACKPRESSURE, failed_ending
from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexEvent,
    ErrorEvent,
    ResponseDone,
    SessionClosed,
    SessionExpired,
    TextDelta,
    TranscriptDelta,
)

# Errors and response endings may go this far beyond the limits (wire contract, section 10).
RESERVE_BYTES = 64 * 1024
RESERVE_EVENTS = 8
# JSON bytes of a closure with its identity; a larger one loses its details (same section).
MAX_CLOSURE_BYTES = 4096
CLOSE_DETAILS_EXCEED_LIMIT = "close_details_exceed_output_limit"

# Responses whose late audio is still refused. One is active at a time, so this is far more than
# what can be under way; the response of the event held by the reader is never forgotten.
MAX_SILENCED_RESPONSES = 64

# As long as what the socket stamps on an event: a UUID in hex, and the largest exact JSON integer.
_LONGEST_EVENT_ID = "event_" + "0" * 32
_LONGEST_SEQ = 2**53

Closure = SessionClosed | SessionExpired
# Tuples, not unions: isinstance is asked of every event, and takes half the time.
_CLOSURES = (SessionClosed, SessionExpired)
_RESERVE_USERS = (ErrorEvent, ResponseDone)
# What an answer is made of, and nothing else: its endings have the words once more.
_INCREMENTS = (AudioDelta, TranscriptDelta, TextDelta)
_WHOLE = ("completed", "incomplete")

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
        slot_released=event.slot_released,
    )


def _undelivered(done: ResponseDone) -> tuple[ResponseDone, int]:
    """The ending of a response that was given up, and its size."""
    if done.response.status in _WHOLE:
        done = failed_ending(done, BACKPRESSURE)
    return done, wire_size(done)


class DuplexOutputBuffer:
    """Events of one session, in order, from one producer thread to one consumer on any loop.

    Bounded in JSON bytes and in events. The event last taken is the consumer's: it is outside of
    both limits, and must pass `deliverable` before it is written.

    If it `gives_up_answers`, an event that does not fit takes the place of the newest answer that
    was not read yet: of that only the endings remain, as those of a failure.
    """

    def __init__(self, *, max_bytes: int, max_events: int, gives_up_answers: bool = False) -> None:
        self._max_bytes = max_bytes
        self._max_events = max_events
        self._gives_up_answers = gives_up_answers
        self._lock = threading.Lock()
        self._queue: deque[tuple[DuplexEvent, int]] = deque()
        self._bytes = 0
        self._overflowed = False
        self._closure: Closure | None = None
        self._sealed = False  # closed or abandoned: whatever else is put is ignored
        # By response, in order of insertion: True if it was given up, not only its audio cancelled.
        self._silenced: dict[str, bool] = {}
        self._given_up: list[str] = []
        self._held_part_of: str | None = None
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
        cancelled response, all of one that was given up but its endings, anything after the closure
        or after the reader left) is ignored.
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
            if self._sealed or self._is_unwanted(event):
                return True
            if not self._has_room(size, may_use_reserve):
                if not self._makes_room(event, size):
                    self._overflowed = True
                    return False
                if self._is_unwanted(event):
                    return True
            self._append(event, size)
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
            self._silence(response_id, wholly=False)

    def take_given_up(self) -> list[str]:
        """The responses that made room since the last call, unless they had been stopped before."""
        given_up, self._given_up = self._given_up, []
        return given_up

    def deliverable(self, event: DuplexEvent) -> bool:
        """Whether an event already taken may still be written; ask right before writing it."""
        with self._lock:
            return not self._is_unwanted(event)

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
        self._held_part_of = event.response_id if isinstance(event, _INCREMENTS) else None
        return event

    def _has_room(self, size: int, may_use_reserve: bool) -> bool:
        max_bytes, max_events = self._max_bytes, self._max_events
        if may_use_reserve:
            max_bytes += RESERVE_BYTES
            max_events += RESERVE_EVENTS
        return self._bytes + size <= max_bytes and len(self._queue) < max_events

    def _append(self, event: DuplexEvent, size: int) -> None:
        if isinstance(event, ResponseDone) and self._silenced.get(event.response_id):
            event, size = _undelivered(event)
        self._queue.append((event, size))
        self._bytes += size

    def _makes_room(self, event: DuplexEvent, size: int) -> bool:
        """Give up unread answers, the newest first, until an event has room or is unwanted."""
        if not self._gives_up_answers:
            return False
        if isinstance(event, _INCREMENTS):
            self._give_up(event.response_id)
            return True
        may_use_reserve = isinstance(event, _RESERVE_USERS)
        while not self._has_room(size, may_use_reserve):
            unread = (e.response_id for e, _ in reversed(self._queue) if isinstance(e, _INCREMENTS))
            newest = next(unread, None)
            if newest is None:
                return False
            self._give_up(newest)
        return True

    def _give_up(self, response_id: str) -> None:
        if not self._was_stopped(response_id):
            self._given_up.append(response_id)
        self._silence(response_id, wholly=True)

    def _was_stopped(self, response_id: str) -> bool:
        """Whether an ending is queued that needs no change: its response was not whole anyway."""
        return any(
            isinstance(event, ResponseDone)
            and event.response_id == response_id
            and event.response.status not in _WHOLE
            for event, _ in self._queue
        )

    def _silence(self, response_id: str, *, wholly: bool) -> None:
        self._silenced[response_id] = wholly or self._silenced.get(response_id, False)
        if len(self._silenced) > MAX_SILENCED_RESPONSES:
            kept = (self._held_part_of, response_id)
            del self._silenced[next(name for name in self._silenced if name not in kept)]
        queue, self._queue, self._bytes = self._queue, deque(), 0
        for event, size in queue:
            if not self._is_unwanted(event):
                self._append(event, size)

    def _is_unwanted(self, event: DuplexEvent) -> bool:
        if isinstance(event, AudioDelta):
            return event.response_id in self._silenced
        return isinstance(event, _INCREMENTS) and self._silenced.get(event.response_id, False)

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
