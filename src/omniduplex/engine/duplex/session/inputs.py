"""What goes into a session: client commands as decoded, and the facts that the runner reports."""

from __future__ import annotations

import msgspec

from omniduplex.engine.turns import TurnChunk, TurnFailure
from omniduplex.protocol.duplex import DuplexCommand, DuplexError, ResponseDone
from omniduplex.stages.messages import StageOutput


class StageResult(msgspec.Struct, frozen=True, gc=False):
    """A stage answered one of the session's requests."""

    stage_id: int
    output: StageOutput


class StageLost(msgspec.Struct, frozen=True, gc=False):
    """A stage died, or refused work, with requests of this session on it."""

    stage_id: int
    message: str


class TurnPart(msgspec.Struct, frozen=True, gc=False):
    """A turn beside the session has made its next piece, or failed."""

    turn_id: str
    part: TurnChunk | TurnFailure


class AudioReady(msgspec.Struct, frozen=True, gc=False):
    """Audio that was converted off the loop: int16 at the model's rate, or the reason it is bad."""

    ticket: int
    pcm: bytes
    error: str | None = None


class CloseRequest(msgspec.Struct, frozen=True, gc=False):
    """The server ends the session; `expired` chooses the event, a `failure` is told before it."""

    reason: str
    expired: bool = False
    failure: DuplexError | None = None


class Tick(msgspec.Struct, frozen=True, gc=False):
    """Time went by: is the session's end near, or here?"""


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    """The time came that the session had set."""


class OutputOverflow(msgspec.Struct, frozen=True, gc=False):
    """The client reads too slowly; `endings` of responses could not be queued.

    The client never heard of `unannounced` responses, so that they need no ending.
    """

    endings: tuple[ResponseDone, ...] = ()
    unannounced: frozenset[str] = frozenset()


class AnswersGivenUp(msgspec.Struct, frozen=True, gc=False):
    """The client reads too slowly: what it has not read of these responses has made room.

    Those that had ended have failed instead, where their endings are still to be read.
    """

    response_ids: tuple[str, ...]


SessionInput = (
    DuplexCommand
    | StageResult
    | StageLost
    | TurnPart
    | AudioReady
    | CloseRequest
    | Tick
    | TimerFired
    | OutputOverflow
    | AnswersGivenUp
)
