"""The user's loudspeaker: when it starts and falls silent, as far as the ledger can tell."""

from __future__ import annotations

from collections.abc import Callable

from omniduplex.engine.duplex.session.playback_ledger import PlaybackLedger, PlaybackRecord
from omniduplex.protocol.duplex import DuplexEvent, OutputStarted, OutputStopped


class Loudspeaker:
    """Plays one response at a time: each that starts is stopped or cleared, exactly once."""

    def __init__(self, ledger: PlaybackLedger, emit: Callable[[DuplexEvent], None]) -> None:
        self._ledger = ledger
        self._emit = emit
        self._record: PlaybackRecord | None = None

    def start(self, record: PlaybackRecord) -> None:
        """Audio of a response goes out; an older one cannot be playing any more.

        What is out of band is played beside it, if at all, or anywhere else.
        """
        if record is self._record or record.out_of_band:
            return
        self._stop()
        self._record = record
        self._emit(OutputStarted(response_id=record.response_id))

    def clear(self, response_id: str) -> bool:
        """What was not played of this response is thrown away; false if nothing of it played."""
        if not self.plays(response_id):
            return False
        self._record = None
        return True

    def settle(self, now: float, active_id: str | None) -> bool:
        """Notice that a response which is whole was played; `now` in s. True when it just was."""
        record = self._record
        if record is None or record.response_id == active_id:
            return False
        if self._ledger.playing(record, now):
            return False
        self._stop()
        return True

    def silent_at(self, active_id: str | None) -> float | None:
        """When (s) there will be something to notice, if time alone tells."""
        record = self._record
        if record is None or record.response_id == active_id:
            return None
        return self._ledger.finishes_at(record)

    @property
    def playing(self) -> bool:
        """Whether a response was started, and neither stopped nor cleared."""
        return self._record is not None

    def plays(self, response_id: str) -> bool:
        """Whether it is this response that was started."""
        return self._record is not None and self._record.response_id == response_id

    def _stop(self) -> None:
        if self._record is not None:
            record, self._record = self._record, None
            self._emit(OutputStopped(response_id=record.response_id))
