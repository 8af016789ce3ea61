"""What is measured of one answer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from omniduplex.benchmarks.serve.player import MS_PER_S, PREROLLS_MS, Chunk, Playback, play

StageMetrics = Mapping[str, Mapping[str, float]]
# Stages report readings of their own clock under such names; a summary of them says nothing.
CLOCK_READING = "at_"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer; what is None was not there to measure. Times are in ms, since the turn's end."""

    status: str
    """The answer's own, `no_answer` when none ended in time, or `error`."""
    ttft_ms: float | None = None
    ttfp_ms: float | None = None
    generation_ms: float | None = None
    audio_ms: float = 0.0
    rtf: float | None = None
    gaps_ms: tuple[float, ...] = ()
    playback: tuple[Playback, ...] = ()
    stages: StageMetrics = {}


@dataclass(slots=True)
class Arrivals:
    """What has come of one answer so far; moments in seconds of the client's clock."""

    asked_at: float
    first_text_at: float | None = None
    chunks: list[Chunk] = field(default_factory=list)
    status: str = "no_answer"
    stages: StageMetrics = field(default_factory=dict)

    def take_text(self, now: float) -> None:
        """A delta of the transcript, or of a text, has been read."""
        if self.first_text_at is None:
            self.first_text_at = now

    def take_audio(self, now: float, ms: float) -> None:
        """A delta of audio has been read."""
        self.chunks.append(Chunk(now, ms))

    def answer(self) -> Answer:
        """The figures."""
        if not self.chunks:
            return Answer(status=self.status, ttft_ms=self._since(self.first_text_at))
        audio_ms = sum(chunk.ms for chunk in self.chunks)
        generation_ms = (self.chunks[-1].at_s - self.asked_at) * MS_PER_S
        pairs = itertools.pairwise(self.chunks)
        return Answer(
            status=self.status,
            ttft_ms=self._since(self.first_text_at),
            ttfp_ms=self._since(self.chunks[0].at_s),
            generation_ms=generation_ms,
            audio_ms=audio_ms,
            rtf=generation_ms / audio_ms,
            gaps_ms=tuple((after.at_s - before.at_s) * MS_PER_S for before, after in pairs),
            playback=tuple(play(self.chunks, preroll_ms) for preroll_ms in PREROLLS_MS),
            stages=measured_stages(self.stages),
        )

    def _since(self, moment: float | None) -> float | None:
        return None if moment is None else (moment - self.asked_at) * MS_PER_S


def measured_stages(stages: StageMetrics) -> StageMetrics:
    """The stages' durations and counts, without readings of a clock."""
    return {
        stage: {name: value for name, value in of.items() if not name.startswith(CLOCK_READING)}
        for stage, of in stages.items()
    }
