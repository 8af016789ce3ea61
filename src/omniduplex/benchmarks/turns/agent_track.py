"""The agent's channel: what a player that obeys the protocol plays, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omniduplex.audio.pcm import SAMPLE_BYTES, int16_to_float32
from omniduplex.benchmarks.turns.sounds import Samples


@dataclass(slots=True)
class Piece:
    """Sound without a gap, of one answer; `start` is a sample of the recording."""

    response_id: str
    start: int
    pcm: bytearray

    @property
    def end(self) -> int:
        """The sample behind its last."""
        return self.start + len(self.pcm) // SAMPLE_BYTES


@dataclass(slots=True)
class Answer:
    """One response as the player knows it."""

    received: int = 0
    """Samples that came, heard or not."""
    text: list[str] = field(default_factory=list)
    done: bool = False
    cut: bool = False
    """It was stopped before its last sample had been heard."""
    silenced: bool = False
    """Nothing more of it is played."""


class AgentTrack:
    """A virtual player: starts `preroll` samples after the arrival, plays in real time.

    Moments are samples since the recording began. When the sound runs out before an answer is
    over, the next of it waits for the pre-roll again.
    """

    def __init__(self, preroll: int) -> None:
        self._preroll = preroll
        self.pieces: list[Piece] = []
        self.answers: dict[str, Answer] = {}
        self.underruns = 0
        self.underrun_samples = 0

    def arrive(self, response_id: str, pcm: bytes, now: int) -> None:
        """Audio of an answer has come."""
        answer = self._answer(response_id)
        answer.received += len(pcm) // SAMPLE_BYTES
        if answer.silenced or not pcm:
            return
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.end > now:
            if last.response_id == response_id:
                last.pcm += pcm
                return
            start = last.end
        else:
            start = now + self._preroll
            if last is not None and last.response_id == response_id:
                self.underruns += 1
                self.underrun_samples += start - last.end
        self.pieces.append(Piece(response_id, start, bytearray(pcm)))

    def say_text(self, response_id: str, text: str) -> None:
        """Words of an answer's transcript have come."""
        self._answer(response_id).text.append(text)

    def done(self, response_id: str) -> None:
        """An answer is over; nothing more of it will come."""
        self._answer(response_id).done = True

    def stop(self, now: int, response_id: str | None = None) -> None:
        """Play no more of an answer, or of all that have begun."""
        kept = []
        for piece in self.pieces:
            if response_id in (None, piece.response_id) and piece.end > now:
                self._answer(piece.response_id).cut = True
                del piece.pcm[max(0, now - piece.start) * SAMPLE_BYTES :]
            if piece.pcm:
                kept.append(piece)
        self.pieces = kept
        for name, answer in self.answers.items():
            if name == response_id or (response_id is None and answer.received):
                answer.silenced = True

    def playing(self, moment: int) -> bool:
        """Whether anything is played at a moment, by what is known now."""
        return any(piece.start <= moment < piece.end for piece in self.pieces)

    def onset(self, since: int) -> Piece | None:
        """The first sound of the first answer that began at or after a moment."""
        began: set[str] = set()
        for piece in self.pieces:
            if piece.response_id not in began and piece.start >= since:
                return piece
            began.add(piece.response_id)
        return None

    def end_of(self, response_id: str) -> int | None:
        """Where an answer's sound ends; None while more of it may come."""
        answer = self.answers[response_id]
        if not (answer.done or answer.silenced):
            return None
        return max(
            (piece.end for piece in self.pieces if piece.response_id == response_id), default=None
        )

    def heard(self, response_id: str, now: int) -> int:
        """How many samples of an answer have been played."""
        return sum(
            min(piece.end, now) - piece.start
            for piece in self.pieces
            if piece.response_id == response_id and piece.start < now
        )

    def samples(self, start: int, count: int) -> Samples:
        """The channel from a sample on; silence where nothing is played."""
        found = np.zeros(count, dtype=np.float32)
        for piece in self.pieces:
            first, last = max(piece.start, start), min(piece.end, start + count)
            if first < last:
                offset = (first - piece.start) * SAMPLE_BYTES
                pcm = bytes(piece.pcm[offset : (last - piece.start) * SAMPLE_BYTES])
                found[first - start : last - start] = int16_to_float32(pcm)
        return found

    def _answer(self, response_id: str) -> Answer:
        return self.answers.setdefault(response_id, Answer())
