"""Decisions by the clock of the audio: what a server had heard, however busy its machine is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from omniduplex.benchmarks.summary import Summary, summarise
from omniduplex.benchmarks.turns.exact import YIELD_S, Findings
from omniduplex.benchmarks.turns.recording import TimedEvent
from omniduplex.benchmarks.turns.spans import ENDS_TURN, Timeline, UserSpan

TURN_OVER = "input_audio_buffer.speech_stopped"
# A detector may take the last breath of a turn for silence.
EARLY_MS = 100.0


class StreamFindings(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation, in ms of audio."""

    holds_ms: tuple[float, ...]
    """Silence after a turn that the server heard before it took the turn for over."""
    overlaps_ms: tuple[float, ...]
    """Speech of an interruption that it heard before it took it for one."""


class StreamPanel(msgspec.Struct, frozen=True, kw_only=True):
    """All conversations; None where the server does not tell."""

    hold_ms: Summary | None
    overlap_ms: Summary | None


def stream_findings(
    timeline: Timeline, findings: Findings, events: Sequence[TimedEvent]
) -> StreamFindings:
    """What the server tells of where in the audio it decided."""
    ends = [span for span in timeline.user if span.kind in ENDS_TURN]
    holds = [hold for span in ends if (hold := _hold_ms(timeline, span, events)) is not None]
    overlaps = [
        heard
        for cut in findings.yields
        if cut.yielded and (heard := _overlap_ms(cut.at_s, events)) is not None
    ]
    return StreamFindings(holds_ms=tuple(holds), overlaps_ms=tuple(overlaps))


def stream_panel(findings: Sequence[StreamFindings]) -> StreamPanel:
    """The panel over any number of conversations."""
    return StreamPanel(
        hold_ms=summarise([ms for found in findings for ms in found.holds_ms]),
        overlap_ms=summarise([ms for found in findings for ms in found.overlaps_ms]),
    )


def _hold_ms(timeline: Timeline, span: UserSpan, events: Sequence[TimedEvent]) -> float | None:
    until_ms = timeline.floor_after(span) * 1000
    for event in events:
        if event.type != TURN_OVER or event.audio_ms is None:
            continue
        hold_ms = event.audio_ms - span.end_s * 1000
        if hold_ms >= -EARLY_MS and event.audio_ms <= until_ms:
            return hold_ms
    return None


def _overlap_ms(at_s: float, events: Sequence[TimedEvent]) -> float | None:
    known = (event for event in events if event.interrupted_after_ms is not None)
    found = (event.interrupted_after_ms for event in known if 0 <= event.at_s - at_s <= YIELD_S)
    return next(found, None)
