"""What was made of an answer and is on its way to the user's ear: stopped there, or forgotten."""

from __future__ import annotations

from omniduplex.engine.conversation.endings import BACKPRESSURE, failed_ending
from omniduplex.engine.conversation.history import answer_item_id
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.effects import DropQueuedAudio
from omniduplex.engine.duplex.session.playback_ledger import PlaybackRecord
from omniduplex.protocol.duplex import OutputCleared, ResponseDone

REPORT_LATE_S = 5.0
"""A client that reports nothing for so long after a player without pauses is done plays nothing."""


class Playout:
    """The sound of responses, made or whole, behind the one that makes them."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core

    @property
    def playing(self) -> PlaybackRecord | None:
        """The newest response while it is played, as far as the ledger can tell."""
        record = self._core.playback.latest
        if record is None or not self._core.playback.playing(record, self._core.now):
            return None
        return record

    @property
    def reported(self) -> PlaybackRecord | None:
        """The newest response while it is played to a client that has to report it."""
        record = self.playing
        if record is None or self._core.config.playback_commit_policy != "ack_only":
            return None
        return record if self._core.now < record.finish_at + REPORT_LATE_S else None

    def cut(self, response_id: str | None = None) -> PlaybackRecord | None:
        """Nothing more is heard of a finished answer that still plays, the newest if none is named.

        An older one plays until the newest has sound.
        """
        record = self.playing
        if response_id is not None:
            plays = self._core.loudspeaker.plays(response_id)
            record = self._core.playback.get(response_id) if plays else None
        if record is not None:
            self._core.playback.interrupt(record, self._core.now)
            self._core.history.touch()
            self.silence(record.response_id, announce=True)
        return record

    def silence(self, response_id: str, *, announce: bool = False) -> None:
        """Nothing more of a response is played.

        The contract tells of it where it was asked for (section 7.4), the OpenAI API always.
        """
        self._core.effects.append(DropQueuedAudio(response_id))
        played = self._core.loudspeaker.clear(response_id)
        if announce or (played and not self._core.config.knows_extensions):
            self._core.emit(OutputCleared(response_id=response_id))

    def forget(self, response_id: str) -> None:
        """Nothing of a response was ever said."""
        self.strike_out(response_id)
        self._core.playback.forget(response_id)
        self._core.loudspeaker.clear(response_id)

    def strike_out(self, response_id: str) -> None:
        """What a response said is no part of the conversation."""
        item_id = answer_item_id(response_id)
        if item_id in self._core.history:
            self._core.history.remove(item_id)

    def undo(self, ending: ResponseDone) -> None:
        """An ending that could not be queued becomes a failure with its identity and output."""
        self.silence(ending.response_id)
        self._core.emit(failed_ending(ending, BACKPRESSURE))
        self._core.emit_rate_limits()
        self.forget(ending.response_id)
