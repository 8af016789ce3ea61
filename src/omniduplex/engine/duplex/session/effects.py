"""What comes out of a session: things for the runner to do, in order."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from omniduplex.engine.duplex.contracts import Abort, Submit
from omniduplex.engine.messages import AbortTurn
from omniduplex.engine.turn_plugin import Turn
from omniduplex.protocol.duplex import DuplexEvent


class Emit(msgspec.Struct, frozen=True, gc=False):
    """Show this event to the client."""

    event: DuplexEvent


class DropQueuedAudio(msgspec.Struct, frozen=True, gc=False):
    """Audio of this response that waits in the output buffer must not be delivered any more."""

    response_id: str


class StartTurn(msgspec.Struct, frozen=True):
    """Run this turn beside the session and report what comes of it as `TurnPart(turn_id)`."""

    turn_id: str
    turn: Turn


class Prepare(msgspec.Struct, frozen=True):
    """Run `convert` off the loop and report its result as `AudioReady(ticket)`."""

    ticket: int
    convert: Callable[[], bytes]


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Report `TimerFired` at session time `at` (s), and not at the time set before; None: never."""

    at: float | None


class Ended(msgspec.Struct, frozen=True, gc=False):
    """The session is over; its closing event was emitted. The reason is never a client's text."""

    reason: str


Effect = (
    Emit | DropQueuedAudio | Submit | Abort | StartTurn | AbortTurn | Prepare | SetTimer | Ended
)
