"""How far each response's audio was made, sent, heard and taken into history."""

from __future__ import annotations

from dataclasses import dataclass

from omniduplex.protocol.duplex import PlaybackCommitPolicy, PlaybackCursor

MAX_OUT_OF_BAND = 64
"""Records of responses beside the conversation: of older ones a client has nothing to tell."""


@dataclass(slots=True)
class PlaybackRecord:
    """One response's positions in ms; all grow only, but for a hard truncation.

    For clients that never acknowledge, `finish_at` (s, session clock) is when a player that
    started at the first delta and never paused would fall silent. What is not `interruptible` is
    heard to its end, whatever the user says meanwhile. What is `out_of_band` is not reckoned with.
    """

    response_id: str
    generated_ms: float = 0.0
    sent_ms: float = 0.0
    played_ms: float = 0.0
    committed_ms: float = 0.0
    finish_at: float = 0.0
    cap_ms: float | None = None
    interrupted_at_ms: float | None = None
    interruptible: bool = True
    out_of_band: bool = False

    @property
    def cut_off(self) -> bool:
        """Whether the user was kept from hearing all of it."""
        return self.cap_ms is not None or self.interrupted_at_ms is not None

    @property
    def cut_short(self) -> bool:
        """Whether what the user was kept from hearing had been sent."""
        return self.cut_off and self.committed_ms < int(self.sent_ms)

    def cursor(self) -> PlaybackCursor:
        """The four positions as the wire shows them, whole ms rounded down."""
        return PlaybackCursor(
            generated_ms=int(self.generated_ms),
            sent_ms=int(self.sent_ms),
            played_ms=int(self.played_ms),
            committed_ms=int(self.committed_ms),
        )

    def estimated_ms(self, now: float) -> float:
        """What a player without pauses has played by now."""
        return max(0.0, self.sent_ms - max(0.0, self.finish_at - now) * 1000.0)


class PlaybackLedger:
    """The playback records of a session, newest last, and the rules about what was heard.

    What is heard of a response out of band is kept, as far as its client tells it, and that is all:
    no rule asks for it.
    """

    def __init__(self, policy: PlaybackCommitPolicy) -> None:
        self.policy = policy
        self.made_audio = False
        """Whether any response in the conversation ever had audio."""
        self._records: dict[str, PlaybackRecord] = {}
        self._out_of_band: dict[str, PlaybackRecord] = {}
        self._acknowledges = False

    def open(self, response_id: str) -> PlaybackRecord:
        """Start the record of a new response."""
        record = PlaybackRecord(response_id)
        self._records[response_id] = record
        return record

    def open_out_of_band(self, response_id: str) -> PlaybackRecord:
        """Start the record of a response beside the conversation."""
        record = PlaybackRecord(response_id, out_of_band=True)
        self._out_of_band[response_id] = record
        if len(self._out_of_band) > MAX_OUT_OF_BAND:
            del self._out_of_band[next(iter(self._out_of_band))]
        return record

    def get(self, response_id: str) -> PlaybackRecord | None:
        """The record of a response, if it made audio."""
        return self._records.get(response_id) or self._out_of_band.get(response_id)

    @property
    def latest(self) -> PlaybackRecord | None:
        """The record of the newest response in the conversation."""
        return next(reversed(self._records.values()), None)

    def forget(self, response_id: str) -> None:
        """Drop the record of a response that left the history."""
        self._records.pop(response_id, None)

    def add_audio(self, record: PlaybackRecord, duration_ms: float, now: float) -> None:
        """Audio was made and handed to the client's output at once."""
        self.made_audio = self.made_audio or not record.out_of_band
        record.generated_ms += duration_ms
        record.sent_ms += duration_ms
        record.finish_at = max(now, record.finish_at) + duration_ms / 1000.0

    def acknowledge(
        self, record: PlaybackRecord, played_ms: float, committed_ms: float | None
    ) -> bool:
        """Take a client's report; true when it changed what counts as heard."""
        self._acknowledges = self._acknowledges or not record.out_of_band
        before = record.committed_ms
        limit = record.generated_ms if record.cap_ms is None else record.cap_ms
        record.played_ms = max(record.played_ms, min(played_ms, limit))
        reported = played_ms if committed_ms is None else committed_ms
        record.committed_ms = max(record.committed_ms, min(reported, limit))
        return record.committed_ms != before

    def truncate(self, record: PlaybackRecord, audio_end_ms: float) -> bool:
        """Cap what was heard, for good; true when audio was really cut off."""
        cap = min(audio_end_ms, record.generated_ms)
        record.cap_ms = cap if record.cap_ms is None else min(cap, record.cap_ms)
        # A client that truncates there says that it has played up to there.
        record.played_ms = record.committed_ms = record.cap_ms
        return record.cap_ms < record.generated_ms

    def interrupt(self, record: PlaybackRecord, now: float) -> None:
        """The user cut the audio off here; only the first time counts."""
        if record.interrupted_at_ms is None:
            record.interrupted_at_ms = record.estimated_ms(now)

    def playing(self, record: PlaybackRecord, now: float) -> bool:
        """Whether the client still has audio of this response to play."""
        if record.cut_off:
            return False
        if self.policy == "ack_only" or self._acknowledges:
            return record.committed_ms < int(record.sent_ms)
        return record.finish_at > now

    def finishes_at(self, record: PlaybackRecord) -> float | None:
        """When (s) a client that acknowledges nothing has played it; None: its reports tell."""
        acknowledged = self.policy == "ack_only" or self._acknowledges
        return None if acknowledged and not record.cut_off else record.finish_at

    def heard_ms(self, record: PlaybackRecord) -> float | None:
        """How much of the response the user heard; None means all of it.

        An acknowledging client is believed. Under `commit_all_on_done` a client that never
        acknowledges heard everything, unless it was interrupted: then the estimate counts.
        """
        if record.cap_ms is not None:
            return record.cap_ms
        if self.policy == "ack_only" or record.committed_ms > 0:
            return record.committed_ms
        if record.interrupted_at_ms is not None and self._acknowledges:
            return record.committed_ms
        return record.interrupted_at_ms
