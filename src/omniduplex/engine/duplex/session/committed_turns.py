"""Turns that are over: committed, answered if that is wanted, and their words when they come."""

from __future__ import annotations

import msgspec

from omniduplex.engine.duplex.model_events import UserTranscript, UserTranscriptFailed
from omniduplex.engine.duplex.session.commit_fanout import (
    CommittedTurn,
    commit_turn,
    transcribed,
    unheard,
)
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.output_lane import OutputLane


class CommittedTurns:
    """What becomes of a turn once it is over, whoever ended it."""

    def __init__(self, core: SessionCore, output: OutputLane) -> None:
        self._core = core
        self._output = output

    def seal(self, turn: CommittedTurn, *, wants_response: bool) -> None:
        """Commit the turn, then answer it if that is wanted."""
        waits = turn.overlap_deferred or self._output.active is not None
        deferred = wants_response and waits
        commit_turn(self._core, msgspec.structs.replace(turn, response_deferred=deferred))
        if deferred:
            self._output.defer()
        elif wants_response:
            self._output.answer_turn(turn.transcript)

    def transcript_known(self, event: UserTranscript) -> None:
        """The words of committed audio; its item may have been deleted meanwhile."""
        item_id, index, history = event.item_id, event.content_index, self._core.history
        if not history.awaits(item_id, index):
            return
        history.transcript_arrived(item_id, event.transcript, index)
        transcribed(self._core, item_id, event.transcript, event.seconds, index)
        if item_id not in history.pending:
            self._output.not_awaited(item_id)

    def transcript_failed(self, event: UserTranscriptFailed) -> None:
        """Those words will never be known, nor be answered."""
        item_id, index = event.item_id, event.content_index
        if not self._core.history.awaits(item_id, index):
            return
        self._core.history.transcript_failed(item_id, index)
        unheard(self._core, item_id, event.message, content_index=index)
        self._output.unheard(item_id)
