from __future__ import annotations

from tests.benchmarks.turns.timelines import agent, cut, timeline, user

from omniduplex.benchmarks.turns.exact import find
from omniduplex.benchmarks.turns.recording import TimedEvent
from omniduplex.benchmarks.turns.spans import AgentSpan, Kind, UserSpan
from omniduplex.benchmarks.turns.stream_time import (
    TURN_OVER,
    StreamFindings,
    stream_findings,
    stream_panel,
)

K = Kind


def over(at_s: float, audio_ms: float) -> TimedEvent:
    return TimedEvent(at_s=at_s, type=TURN_OVER, audio_ms=audio_ms)


def interrupted(at_s: float, after_ms: float) -> TimedEvent:
    return TimedEvent(at_s=at_s, type="overlap.decision", interrupted_after_ms=after_ms)


def found(*spans: UserSpan | AgentSpan, events: list[TimedEvent]) -> StreamFindings:
    line = timeline(*spans)
    return stream_findings(line, find(line), events)


def test_a_hold_is_told_by_the_audio_however_late_it_comes() -> None:
    events = [over(0.9, 900), over(4.0, 2420)]
    assert found(user(K.TURN, 1, 2), agent(5, 9), events=events).holds_ms == (420,)


def test_a_turn_may_end_in_its_last_breath() -> None:
    assert found(user(K.TURN, 1, 2), events=[over(2.0, 1950)]).holds_ms == (-50,)


def test_the_end_of_the_next_turn_is_not_that_of_this() -> None:
    spans = user(K.TURN, 1, 2), user(K.TURN, 5, 6)
    assert found(*spans, events=[over(6.5, 6400)]).holds_ms == (400,)


def test_an_interruption_is_known_after_so_much_speech() -> None:
    spans = cut(1, 5.9), user(K.INTERRUPTION, 5, 7)
    events = [interrupted(3.0, 200), interrupted(5.8, 320)]
    assert found(*spans, events=events).overlaps_ms == (320,)
    assert found(*spans, events=[interrupted(7.5, 320)]).overlaps_ms == ()


def test_servers_that_tell_nothing_have_no_figures() -> None:
    panel = stream_panel([found(user(K.TURN, 1, 2), agent(3, 4), events=[])])
    assert panel.hold_ms is panel.overlap_ms is None
