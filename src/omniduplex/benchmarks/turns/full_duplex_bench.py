"""The measures of Full-Duplex-Bench v1 (arXiv 2503.04721), latencies clipped and as they were.

Words of the agent come from its transcript by their share of the audio, where the original asks a
recogniser. The backchannel timing distance is left out: it compares with people's recordings.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from omniduplex.benchmarks.summary import Summary, summarise
from omniduplex.benchmarks.turns.spans import FLOOR, AgentSpan, Kind, Timeline, Turn, turns

# Thresholds of the original's evaluation.
TAKEOVER_S = 1.0
TAKEOVER_WORDS = 3
BACKCHANNEL_LONGEST_S = 3.0
BACKCHANNEL_S = 1.0
BACKCHANNEL_WORDS = 2


class Takeover(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the agent took the floor, and when, from the end of the user's speech."""

    at_s: float
    taken: bool
    latency_s: float | None = None
    """Negative where it began before the user had ended."""


class OwnBackchannels(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent said while the user had the floor."""

    taken: bool
    segments: int
    seconds: float


class FdbFindings(msgspec.Struct, frozen=True, kw_only=True):
    """All that the panel counts in one conversation."""

    pauses: tuple[Takeover, ...]
    turns: tuple[Takeover, ...]
    interruptions: tuple[Takeover, ...]
    backchannels: tuple[OwnBackchannels, ...]


class TakeoverFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Takeover rate, and latencies over those that were taken."""

    count: int
    rate: float | None
    latency_s: float | None
    """Mean as in the original: a negative latency is 0."""
    unclipped_s: Summary | None


class FdbPanel(msgspec.Struct, frozen=True, kw_only=True):
    """The four tasks; None where nothing was counted."""

    pause_takeover: float | None
    turn_taking: TakeoverFigures
    interruption: TakeoverFigures
    backchannel_takeover: float | None
    backchannels_per_s: float | None
    counts: dict[str, int]


def takes_over(spans: Sequence[AgentSpan]) -> bool:
    """Whether these words take the floor: a short one of few words does not."""
    if not spans:
        return False
    length_s = max(span.end_s for span in spans) - min(span.start_s for span in spans)
    words = sum(span.words for span in spans)
    return not (length_s < TAKEOVER_S and words <= TAKEOVER_WORDS)


def backchannel_takes_over(spans: Sequence[AgentSpan]) -> bool:
    """Whether what was said beside the user takes the floor.

    As in the original, the last segment decides among those that are not long.
    """
    taken = False
    for span in spans:
        length_s = span.end_s - span.start_s
        if length_s > BACKCHANNEL_LONGEST_S:
            return True
        taken = not (length_s < BACKCHANNEL_S and span.words <= BACKCHANNEL_WORDS)
    return taken


def fdb_findings(timeline: Timeline) -> FdbFindings:
    """Everything that the panel counts in one conversation."""
    whole = turns(timeline.user)
    beside = [timeline.started_between(turn.start_s, turn.end_s) for turn in whole]
    return FdbFindings(
        pauses=tuple(
            Takeover(at_s=turn.start_s, taken=takes_over(spans))
            for turn, spans in zip(whole, beside, strict=True)
            if turn.pauses
        ),
        turns=tuple(
            _takeover(timeline, turn.start_s, turn.end_s, timeline.floor_after(turn.spans[-1]))
            for turn in whole
            if not _interrupted(timeline, turn)
        ),
        interruptions=tuple(
            _takeover(timeline, span.start_s, span.end_s, timeline.floor_after(span))
            for span in timeline.user
            if span.kind is Kind.INTERRUPTION
        ),
        backchannels=tuple(
            OwnBackchannels(
                taken=backchannel_takes_over(spans),
                segments=len(spans),
                seconds=turn.end_s - turn.start_s,
            )
            for turn, spans in zip(whole, beside, strict=True)
        ),
    )


def _interrupted(timeline: Timeline, turn: Turn) -> bool:
    """Whether its answer is cut by the user: the original's turns are followed by silence."""
    later = (span for span in timeline.user if span.kind in FLOOR and span.start_s >= turn.end_s)
    following = next(later, None)
    return following is not None and following.kind is Kind.INTERRUPTION


def _takeover(timeline: Timeline, start_s: float, end_s: float, until_s: float) -> Takeover:
    """What was begun during an utterance and silenced before its end is no answer to it."""
    spans = [span for span in timeline.started_between(start_s, until_s) if span.end_s > end_s]
    if not takes_over(spans):
        return Takeover(at_s=end_s, taken=False)
    return Takeover(at_s=end_s, taken=True, latency_s=spans[0].start_s - end_s)


def fdb_panel(findings: Sequence[FdbFindings]) -> FdbPanel:
    """The panel over any number of conversations."""
    pauses = [one for found in findings for one in found.pauses]
    taken = [one for found in findings for one in found.turns]
    interruptions = [one for found in findings for one in found.interruptions]
    beside = [one for found in findings for one in found.backchannels]
    seconds = sum(one.seconds for one in beside)
    return FdbPanel(
        pause_takeover=_rate([one.taken for one in pauses]),
        turn_taking=_figures(taken),
        interruption=_figures(interruptions),
        backchannel_takeover=_rate([one.taken for one in beside]),
        backchannels_per_s=sum(one.segments for one in beside) / seconds if seconds else None,
        counts={
            "pause": len(pauses),
            "turn_taking": len(taken),
            "interruption": len(interruptions),
            "backchannel": len(beside),
        },
    )


def _figures(found: Sequence[Takeover]) -> TakeoverFigures:
    known = [one.latency_s for one in found if one.latency_s is not None]
    clipped = [max(0.0, latency_s) for latency_s in known]
    return TakeoverFigures(
        count=len(found),
        rate=_rate([one.taken for one in found]),
        latency_s=sum(clipped) / len(clipped) if clipped else None,
        unclipped_s=summarise(known),
    )


def _rate(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None
