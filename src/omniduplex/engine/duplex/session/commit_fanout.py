"""A committed turn on the wire: the user's item enters the history and is announced."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.history import HistoryEntry
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
)


class CommittedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A user turn that ended; `transcript` is None while its words are being recognised."""

    item_id: str
    transcript: str | None
    audio_ms: float
    is_speech: bool = True
    response_deferred: bool = False


def commit_turn(core: SessionCore, turn: CommittedTurn) -> None:
    """Add the turn to the history and emit its fan-out.

    The contract (section 7.1) announces the item before the commit, the OpenAI API after it.
    """
    part = ContentPart(
        type="input_audio",
        transcript=turn.transcript,
        is_speech=UNSET if turn.is_speech else False,
    )
    item = Item(id=turn.item_id, role="user", content=(part,))
    previous = core.history.add(HistoryEntry(item))
    core.turn_id += 1
    core.turn_state = "user_committed"
    if turn.transcript is None:
        core.history.await_transcript(turn.item_id)
    committed = InputCommitted(
        item_id=turn.item_id, previous_item_id=previous, event=_facts(core, turn)
    )
    if core.config.dialect.is_openai:
        core.emit(committed)
    core.emit(ItemAdded(item=item, previous_item_id=previous))
    core.emit(ItemCreated(item=item, previous_item_id=previous))
    if not core.config.dialect.is_openai:
        core.emit(committed)
    if turn.transcript:
        transcribed(core, turn.item_id, turn.transcript, turn.audio_ms / 1000.0)
    core.emit(ItemDone(item=item, previous_item_id=previous))


def transcribed(core: SessionCore, item_id: str, transcript: str, seconds: float) -> None:
    """Show the words of a user item; `seconds` of audio is what recognition is billed by."""
    usage = DurationUsage(seconds=round(seconds, 3))
    core.emit(TranscriptionCompleted(item_id=item_id, transcript=transcript, usage=usage))


def _facts(core: SessionCore, turn: CommittedTurn) -> CommitFacts:
    silent = not turn.is_speech
    return CommitFacts(
        session_id=core.session_id,
        turn_id=core.turn_id,
        epoch=core.epoch,
        history_len=len(core.history),
        message=CommittedMessage(content=(AudioUrlPart(transcript=turn.transcript or UNSET),)),
        realtime_item_id=turn.item_id,
        response_create_deferred=turn.response_deferred or UNSET,
        empty=silent or UNSET,
        is_speech=False if silent else UNSET,
        no_response=silent or UNSET,
    )
