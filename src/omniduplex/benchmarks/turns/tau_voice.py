"""The interaction panel of tau-voice (arXiv 2603.13686), from 200 ms ticks.

Every word of a definition that has an odd side is kept: a turn without an answer counts only when
the user speaks again, and an answer that ends by itself within the window of a backchannel counts
as stopped. The parts of a turn with a pause wait for no answer, so they are no turns here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from omniduplex.benchmarks.turns.spans import (
    ENDS_TURN,
    NOT_SPEECH,
    TICK_S,
    Kind,
    Timeline,
    UserSpan,
    tick_range,
    ticks,
)

# Windows of tau2-bench's docs/interaction-metrics.md, in ticks of 200 ms.
NO_YIELD_TICKS = 10
KEPT_TICKS = 5
IGNORED_TICKS = 10


class Category(StrEnum):
    """What kind of moment an event is."""

    RESPONSE = "response"
    YIELD = "yield"
    AGENT_INTERRUPTION = "agent_interruption"
    BACKCHANNEL = "backchannel"
    VOCAL_TIC = "vocal_tic"
    NON_DIRECTED = "non_directed"


SELECTIVE = {
    Kind.BACKCHANNEL: Category.BACKCHANNEL,
    Kind.VOCAL_TIC: Category.VOCAL_TIC,
    Kind.NON_DIRECTED: Category.NON_DIRECTED,
}
IGNORABLE = (Kind.VOCAL_TIC, Kind.NON_DIRECTED)


class TauEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One moment that the panel counts."""

    category: Category
    at_s: float
    error: bool
    latency_s: float | None = None


class TauPanel(msgspec.Struct, frozen=True, kw_only=True):
    """The eight figures under the names that tau2-bench gives them; None: nothing was counted."""

    response_latency_mean: float | None
    """L_R: seconds from the end of a user's turn to the answer."""
    response_rate: float | None
    """R_R: share of turns that were answered before the user spoke again."""
    yield_latency_mean: float | None
    """L_Y: seconds from an interruption to the agent's silence."""
    yield_rate: float | None
    """R_Y: share of interruptions to which the agent yielded within 2 s."""
    agent_interruption_rate: float | None
    """I_A: starts of the agent while the user speaks, for each user turn."""
    selectivity_backchannel: float | None
    """S_BC: share of backchannels that the agent let pass."""
    selectivity_vocal_tic: float | None
    """S_VT: of vocal tics."""
    selectivity_non_directed: float | None
    """S_ND: of speech to others."""
    counts: dict[str, int]
    """How many events are behind the rates, by category."""


class _Segment(msgspec.Struct, frozen=True):
    span: UserSpan
    at: range
    agent_at_start: bool
    agent_at_end: bool


def tau_events(timeline: Timeline) -> list[TauEvent]:
    """Everything that the panel counts in one conversation, in order."""
    agent = ticks(timeline.agent, timeline.length_s)
    starts = [index for index, on in enumerate(agent) if on and not (index and agent[index - 1])]
    segments = [
        _segment(span, agent)
        for span in timeline.user
        if span.kind not in NOT_SPEECH and span.start_s < timeline.length_s
    ]
    events = _responses(segments, starts)
    events += [_overlap(one, agent) for one in segments if one.agent_at_start]
    events += [
        _in_silence(one, starts)
        for one in segments
        if not one.agent_at_start and one.span.kind in IGNORABLE
    ]
    events += _agent_interruptions(timeline, segments, starts)
    return sorted(events, key=lambda event: event.at_s)


def tau_panel(events: Sequence[TauEvent]) -> TauPanel:
    """The panel over the events of any number of conversations."""

    def of(category: Category) -> list[TauEvent]:
        return [event for event in events if event.category is category]

    def rate(category: Category) -> float | None:
        return _ratio(sum(not event.error for event in of(category)), len(of(category)))

    responses, interruptions = of(Category.RESPONSE), of(Category.AGENT_INTERRUPTION)
    return TauPanel(
        response_latency_mean=_mean_latency(responses),
        response_rate=rate(Category.RESPONSE),
        yield_latency_mean=_mean_latency(of(Category.YIELD)),
        yield_rate=rate(Category.YIELD),
        agent_interruption_rate=_ratio(len(interruptions), len(responses)),
        selectivity_backchannel=rate(Category.BACKCHANNEL),
        selectivity_vocal_tic=rate(Category.VOCAL_TIC),
        selectivity_non_directed=rate(Category.NON_DIRECTED),
        counts={category.value: len(of(category)) for category in Category},
    )


def _segment(span: UserSpan, agent: Sequence[bool]) -> _Segment:
    at = tick_range(span.start_s, span.end_s)
    return _Segment(
        span=span,
        at=at,
        agent_at_start=agent[at.start],
        agent_at_end=at.stop < len(agent) and agent[at.stop],
    )


def _responses(segments: Sequence[_Segment], starts: Sequence[int]) -> list[TauEvent]:
    waiting = [one for one in segments if one.span.kind in ENDS_TURN and not one.agent_at_end]
    # Speech over an agent that goes on is no new turn, there as here.
    spoken = [one for one in segments if one.span.kind not in SELECTIVE and not one.agent_at_end]
    events = []
    for one in waiting:
        answer = _from(starts, one.at.stop)
        again = _from([other.at.start for other in spoken], one.at.stop)
        if answer is not None and (again is None or answer <= again):
            latency_s = (answer - one.at.stop) * TICK_S
            events.append(_event(Category.RESPONSE, one.at.stop, False, latency_s))
        elif again is not None:
            events.append(_event(Category.RESPONSE, one.at.stop, True))
    return events


def _overlap(one: _Segment, agent: Sequence[bool]) -> TauEvent:
    category = SELECTIVE.get(one.span.kind, Category.YIELD)
    window = NO_YIELD_TICKS if category is Category.YIELD else KEPT_TICKS
    watched = range(one.at.start, min(one.at.start + window, len(agent)))
    silent = next((index for index in watched if not agent[index]), None)
    if category is not Category.YIELD:
        return _event(category, one.at.start, silent is not None)
    latency_s = None if silent is None else (silent - one.at.start) * TICK_S
    return _event(category, one.at.start, silent is None, latency_s)


def _in_silence(one: _Segment, starts: Sequence[int]) -> TauEvent:
    answered = any(one.at.start <= start <= one.at.stop + IGNORED_TICKS for start in starts)
    return _event(SELECTIVE[one.span.kind], one.at.start, answered)


def _agent_interruptions(
    timeline: Timeline, segments: Sequence[_Segment], starts: Sequence[int]
) -> list[TauEvent]:
    user = ticks([one.span for one in segments], timeline.length_s)
    return [_event(Category.AGENT_INTERRUPTION, start, True) for start in starts if user[start]]


def _event(category: Category, tick: int, error: bool, latency_s: float | None = None) -> TauEvent:
    return TauEvent(category=category, at_s=tick * TICK_S, error=error, latency_s=latency_s)


def _from(moments: Sequence[int], earliest: int) -> int | None:
    return next((moment for moment in moments if moment >= earliest), None)


def _mean_latency(events: Sequence[TauEvent]) -> float | None:
    known = [event.latency_s for event in events if event.latency_s is not None]
    return _ratio(sum(known), len(known))


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None
