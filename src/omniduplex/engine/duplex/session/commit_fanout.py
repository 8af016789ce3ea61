"""A committed turn on the wire: the user's item enters the history and is announced."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from omniduplex.engine.conversation.history import HistoryEntry
from omniduplex.engine.duplex.session.announcing import announce
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import (
    AudioUrlPart,
    CommitFacts,
    CommittedMessage,
    ContentPart,
    DurationUsage,
    InputCommitted,
    Item,
    ItemAdded,
    ItemCreated,
    ItemDone,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionError,
    TranscriptionFailed,
    error_kind,
)


class CommittedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A user turn that ended; `transcript` is None while its words are being recognised.

    With a `failure` they never will be known. A turn without speech is answered only when the
    silence itself is what the model shall react to. One that was spoken over an answer is deferred,
    or was but an acknowledgement.
    """

    item_id: str
    transcript: str | None
    audio_ms: float
    is_speech: bool = True
    response_deferred: bool = False
    overlap_deferred: bool = False
    overlap_ack: bool = False
    failure: str | None = None
    silence_answered: bool = False


def commit_turn(core: SessionCore, turn: CommittedTurn) -> None:
    """Add the turn to the history and emit its fan-out (wire contract, section 7.1)."""
    part = ContentPart(
        type="input_audio",
        transcript=turn.transcript,
        is_speech=UNSET if turn.is_speech else False,
    )
    item = Item(id=turn.item_id, role="user", content=(part,))
    previous = core.history.add(HistoryEntry(item))
    core.turn_id += 1
    core.turn_state = "user_committed"
    if turn.transcript is None and turn.failure is None:
        core.history.await_transcript(turn.item_id)
    committed = InputCommitted(
        item_id=turn.item_id, previous_item_id=previous, event=_facts(core, turn)
    )
    announce(core, item, previous, committed)
    if turn.transcript:
        transcribed(core, turn.item_id, turn.transcript, turn.audio_ms / 1000.0)
    elif turn.failure is not None:
        unheard(core, turn.item_id, turn.failure)
    core.emit(ItemDone(item=item, previous_item_id=previous))


def commit_item(core: SessionCore, item: Item, previous: str | None) -> None:
    """Add an item whose audio is to be recognised: a turn that nobody answers yet (section 7.6).

    For a stock client of the OpenAI API nothing was committed: its input buffer is as it was.
    """
    core.emit(ItemAdded(item=item, previous_item_id=previous))
    core.emit(ItemCreated(item=item, previous_item_id=previous))
    core.turn_id += 1
    if core.config.knows_extensions:
        turn = CommittedTurn(item_id=item.id, transcript=None, audio_ms=0.0)
        core.emit(
            InputCommitted(item_id=item.id, previous_item_id=previous, event=_facts(core, turn))
        )
    core.emit(ItemDone(item=item, previous_item_id=previous))


def transcribed(
    core: SessionCore, item_id: str, transcript: str, seconds: float, content_index: int = 0
) -> None:
    """Show the words of a user item; `seconds` of audio is what recognition is billed by.

    A draft may change with the next word, so that the whole transcript is its one delta.
    """
    if transcript:
        core.emit(
            TranscriptionDelta(item_id=item_id, content_index=content_index, delta=transcript)
        )
    core.emit(
        TranscriptionCompleted(
            item_id=item_id,
            content_index=content_index,
            transcript=transcript,
            usage=DurationUsage(seconds=round(seconds, 3)),
        )
    )


def unheard(
    core: SessionCore,
    item_id: str,
    message: str,
    *,
    code: str = "transcription_failed",
    content_index: int = 0,
) -> None:
    """Tell that the words of a user item will never be known."""
    error = TranscriptionError(type=error_kind(code).error_class, code=code, message=message)
    core.emit(TranscriptionFailed(item_id=item_id, content_index=content_index, error=error))


def _facts(core: SessionCore, turn: CommittedTurn) -> CommitFacts:
    silent = not turn.is_speech
    return CommitFacts(
        session_id=core.session_id,
        turn_id=core.turn_id,
        epoch=core.epoch,
        history_len=len(core.history),
        message=CommittedMessage(content=(AudioUrlPart(transcript=turn.transcript or UNSET),)),
        realtime_item_id=turn.item_id,
        overlap_deferred=turn.overlap_deferred or UNSET,
        overlap_ack=turn.overlap_ack or UNSET,
        response_create_deferred=(
            turn.response_deferred if turn.response_deferred or turn.overlap_deferred else UNSET
        ),
        empty=silent or UNSET,
        is_speech=False if silent else UNSET,
        no_response=(silent and not turn.silence_answered) or UNSET,
    )
