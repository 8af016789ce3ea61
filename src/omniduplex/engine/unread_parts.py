"""What a turn has made and its reader has not taken yet: bounded, for stages wait for no reader."""

from __future__ import annotations

import threading
from collections.abc import Callable

from omniduplex.engine.turns import TurnChunk, TurnFailure

# Eleven minutes of speech at 24 kHz: more than the longest text that may be spoken.
MAX_UNREAD_BYTES = 32 * 1024 * 1024
# What a chunk costs beside its sound and its words, about.
_CHUNK_BYTES = 512


class UnreadParts:
    """Counts the parts of one turn from the engine loop, which puts them, to the reader's thread.

    A turn of which too much waits is stopped by `abort`. Any turn calls `on_end` once, before its
    last part is delivered; what comes after that is dropped.
    """

    def __init__(
        self,
        deliver: Callable[[TurnChunk | TurnFailure], None],
        abort: Callable[[], None],
        on_end: Callable[[], None],
        *,
        max_bytes: int = MAX_UNREAD_BYTES,
    ) -> None:
        self._deliver = deliver
        self._abort = abort
        self._on_end = on_end
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._bytes = 0
        self._has_ended = False

    def put(self, part: TurnChunk | TurnFailure) -> None:
        """Deliver a part, or the failure that takes its place."""
        if self._has_ended:
            return
        with self._lock:
            self._bytes += _size(part)
            is_too_much = self._bytes > self._max_bytes
        if is_last(part):
            self._end(part)
        elif is_too_much:
            self._abort()
            self._end(TurnFailure("the answer was given up: it was not read"))
        else:
            self._deliver(part)

    def taken(self, part: TurnChunk | TurnFailure) -> None:
        """The reader has this one."""
        with self._lock:
            self._bytes -= _size(part)

    def _end(self, part: TurnChunk | TurnFailure) -> None:
        self._has_ended = True
        self._on_end()
        self._deliver(part)


def is_last(part: TurnChunk | TurnFailure) -> bool:
    """Whether nothing follows."""
    return isinstance(part, TurnFailure) or part.finished


def _size(part: TurnChunk | TurnFailure) -> int:
    if isinstance(part, TurnFailure):
        return _CHUNK_BYTES
    calls = sum(len(call.arguments) for call in part.tool_calls)
    return _CHUNK_BYTES + len(part.pcm) + len(part.text) + calls
