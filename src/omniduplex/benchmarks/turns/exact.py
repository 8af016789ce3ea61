"""Our own measures: to the ms, unclipped, and fair to an answer that ends by itself."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from omniduplex.benchmarks.summary import Summary, summarise
from omniduplex.benchmarks.turns.spans import (
    DISTURBANCES,
    ENDS_TURN,
    Kind,
    Timeline,
    Turn,
    UserSpan,
    turns,
)

# The windows of tau-voice, here from the end of a disturbance.
YIELD_S = 2.0
KEPT_S = 1.0
IGNORED_S = 2.0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the end of a turn; None for the latency where no answer came."""

    kind: Kind
    at_s: float
    latency_s: float | None


class Yield(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an interruption."""

    at_s: float
    yielded: bool
    latency_s: float | None
    """From its onset to the agent's silence, however late; None while it spoke on."""


class Disturbance(msgspec.Struct, frozen=True, kw_only=True):
    """What became of something that meant nothing to the agent."""

    kind: Kind
    at_s: float
    during_answer: bool
    let_pass: bool


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a pause inside a turn."""

    at_s: float
    length_s: float
    started: bool
    """The agent took it for the end: it began before the turn ended, however short."""


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """All that is counted in one conversation."""

    replies: tuple[Reply, ...]
    yields: tuple[Yield, ...]
    disturbances: tuple[Disturbance, ...]
    pauses: tuple[Pause, ...]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How often something went right."""

    count: int
    share: float


class ExactPanel(msgspec.Struct, frozen=True, kw_only=True):
    """The figures over all conversations; None where nothing was counted."""

    answered: Rate | None
    reply_ms: Summary | None
    after_interruption_ms: Summary | None
    yielded: Rate | None
    yield_ms: Summary | None
    pauses_kept: Rate | None
    let_pass: dict[str, Rate]
    """By kind of disturbance, during an answer and in silence together."""


def find(timeline: Timeline) -> Findings:
    """Everything that is counted in one conversation."""
    user = timeline.user
    ends = [span for span in user if span.kind in ENDS_TURN]
    cuts = [span for span in user if span.kind is Kind.INTERRUPTION]
    disturbances = [span for span in user if span.kind in DISTURBANCES]
    return Findings(
        replies=tuple(_reply(timeline, span) for span in ends),
        yields=tuple(found for span in cuts if (found := _yield(timeline, span))),
        disturbances=tuple(passed for span in disturbances if (passed := _passed(timeline, span))),
        pauses=tuple(pause for turn in turns(user) for pause in _pauses(timeline, turn)),
    )


def exact_panel(findings: Sequence[Findings]) -> ExactPanel:
    """The panel over any number of conversations."""
    replies = [one for found in findings for one in found.replies]
    yields = [one for found in findings for one in found.yields]
    disturbances = [one for found in findings for one in found.disturbances]
    by_kind = {
        kind.value: rate
        for kind in Kind
        if (rate := _rate([one.let_pass for one in disturbances if one.kind is kind]))
    }
    return ExactPanel(
        answered=_rate([one.latency_s is not None for one in replies]),
        reply_ms=_ms([one.latency_s for one in replies if one.kind is Kind.TURN]),
        after_interruption_ms=_ms(
            [one.latency_s for one in replies if one.kind is Kind.INTERRUPTION]
        ),
        yielded=_rate([one.yielded for one in yields]),
        yield_ms=_ms([one.latency_s for one in yields]),
        pauses_kept=_rate([not one.started for found in findings for one in found.pauses]),
        let_pass=by_kind,
    )


def _reply(timeline: Timeline, span: UserSpan) -> Reply:
    until_s = timeline.floor_after(span)
    answers = [
        answer
        for answer in timeline.started_between(span.start_s, until_s)
        if answer.end_s > span.end_s
    ]
    latency_s = answers[0].start_s - span.end_s if answers else None
    return Reply(kind=span.kind, at_s=span.end_s, latency_s=latency_s)


def _yield(timeline: Timeline, span: UserSpan) -> Yield | None:
    """None where the agent did not speak, or ended by itself: nobody can tell."""
    spoken = timeline.speaking_at(span.start_s)
    if spoken is None:
        return None
    latency_s = spoken.end_s - span.start_s
    if spoken.ended and latency_s <= YIELD_S:
        return None
    if spoken.ended or spoken.end_s >= timeline.length_s:
        return Yield(at_s=span.start_s, yielded=False, latency_s=None)
    return Yield(at_s=span.start_s, yielded=latency_s <= YIELD_S, latency_s=latency_s)


def _passed(timeline: Timeline, span: UserSpan) -> Disturbance | None:
    """None where an answer ended by itself before anyone could tell."""
    spoken = timeline.speaking_at(span.start_s)
    if spoken is None:
        began = timeline.started_between(span.start_s, span.end_s + IGNORED_S)
        return Disturbance(
            kind=span.kind, at_s=span.start_s, during_answer=False, let_pass=not began
        )
    stopped = spoken.end_s < min(span.end_s + KEPT_S, timeline.length_s)
    # A whole echo is heard to its end: it lasts as long as the answer.
    if stopped and spoken.ended and span.kind is not Kind.ECHO:
        return None
    return Disturbance(
        kind=span.kind,
        at_s=span.start_s,
        during_answer=True,
        let_pass=spoken.ended or not stopped,
    )


def _pauses(timeline: Timeline, turn: Turn) -> list[Pause]:
    """A start that the pause brought about may come when the user has just gone on."""
    return [
        Pause(
            at_s=start_s,
            length_s=end_s - start_s,
            started=bool(timeline.started_between(start_s, resumed.end_s)),
        )
        for (start_s, end_s), resumed in zip(turn.pauses, turn.spans[1:], strict=True)
    ]


def _ms(latencies_s: Sequence[float | None]) -> Summary | None:
    return summarise([None if value is None else value * 1000 for value in latencies_s])


def _rate(found: Sequence[bool]) -> Rate | None:
    return Rate(count=len(found), share=sum(found) / len(found)) if found else None
