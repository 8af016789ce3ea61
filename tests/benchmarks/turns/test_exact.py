from __future__ import annotations

import pytest
from tests.benchmarks.turns.timelines import agent, cut, timeline, user

from omniduplex.benchmarks.turns.exact import ExactPanel, Findings, exact_panel, find
from omniduplex.benchmarks.turns.spans import AgentSpan, Kind, UserSpan

K = Kind


def found(*spans: UserSpan | AgentSpan, length_s: float = 20.0) -> Findings:
    return find(timeline(*spans, length_s=length_s))


def panel(*spans: UserSpan | AgentSpan) -> ExactPanel:
    return exact_panel([found(*spans)])


def passed(*spans: UserSpan | AgentSpan, length_s: float = 20.0) -> list[bool]:
    return [one.let_pass for one in found(*spans, length_s=length_s).disturbances]


def test_a_reply_is_timed_to_the_ms_and_may_be_early() -> None:
    assert found(user(K.TURN, 1, 2), agent(2.873, 9)).replies[0].latency_s == pytest.approx(0.873)
    assert found(user(K.TURN, 1, 2), agent(1.9, 9)).replies[0].latency_s == pytest.approx(-0.1)


def test_a_last_turn_without_answer_is_unanswered() -> None:
    answered = panel(user(K.TURN, 1, 2)).answered
    assert answered is not None
    assert (answered.count, answered.share) == (1, 0.0)


def test_a_reply_after_the_user_spoke_again_answers_that() -> None:
    replies = found(user(K.TURN, 1, 2), user(K.TURN, 5, 6), agent(7, 9)).replies
    assert [reply.latency_s for reply in replies] == [None, 1]


def test_a_lead_waits_for_no_answer() -> None:
    assert len(found(user(K.LEAD, 1, 2), user(K.TURN, 3, 4), agent(5, 9)).replies) == 1


def test_replies_to_turns_and_to_interruptions_are_apart() -> None:
    both = panel(user(K.TURN, 1, 2), cut(3, 5.2), user(K.INTERRUPTION, 5, 6), agent(7.5, 9))
    assert both.reply_ms is not None
    assert both.after_interruption_ms is not None
    assert (both.reply_ms.p50, both.after_interruption_ms.p50) == (1000, 1500)


@pytest.mark.parametrize(
    ("spoken", "yielded", "latency_s"),
    [
        (cut(3, 5.25), True, 0.25),
        (cut(3, 7.5), False, 2.5),
        (agent(3, 20), False, None),
        (agent(3, 9), False, None),
    ],
)
def test_a_yield_is_timed_from_the_onset(
    spoken: AgentSpan, yielded: bool, latency_s: float | None
) -> None:
    one = found(spoken, user(K.INTERRUPTION, 5, 7)).yields[0]
    assert (one.yielded, one.latency_s) == (yielded, latency_s)


def test_nobody_can_tell_whether_an_answer_that_ends_by_itself_yielded() -> None:
    assert found(agent(3, 6), user(K.INTERRUPTION, 5, 7)).yields == ()
    assert found(user(K.INTERRUPTION, 5, 7)).yields == ()


@pytest.mark.parametrize("kind", [K.BACKCHANNEL, K.VOCAL_TIC, K.NON_DIRECTED, K.NOISE])
def test_a_disturbance_is_let_pass_by_speaking_on(kind: Kind) -> None:
    assert passed(cut(1, 5.2), user(kind, 5, 5.5)) == [False]
    assert passed(cut(1, 6.4), user(kind, 5, 5.5)) == [False]
    assert passed(cut(1, 6.6), user(kind, 5, 5.5)) == [True]
    assert passed(agent(1, 5.3), user(kind, 5, 5.5)) == []


@pytest.mark.parametrize("kind", [K.VOCAL_TIC, K.NON_DIRECTED, K.NOISE])
def test_a_disturbance_in_silence_is_let_pass_by_silence(kind: Kind) -> None:
    assert passed(user(kind, 1, 2), agent(1.5, 3)) == [False]
    assert passed(user(kind, 1, 2), agent(3.9, 5)) == [False]
    assert passed(user(kind, 1, 2), agent(4.1, 5)) == [True]


def test_an_agent_that_hears_itself_and_stops_is_caught() -> None:
    assert passed(cut(1, 2.5), user(K.ECHO, 1, 2.5)) == [False]
    assert passed(agent(1, 9), user(K.ECHO, 1, 9)) == [True]
    assert passed(agent(1, 9), user(K.ECHO, 1, 9), length_s=9.0) == [True]


@pytest.mark.parametrize(
    ("spoken", "started"),
    [(cut(2.5, 2.7), True), (cut(2.7, 2.8), True), (agent(4.0, 6), False)],
)
def test_a_start_before_the_turn_has_ended_takes_the_pause_for_its_end(
    spoken: AgentSpan, started: bool
) -> None:
    parts = (user(K.PART, 1, 2), user(K.TURN, 2.6, 4))
    assert [one.started for one in found(*parts, spoken).pauses] == [started]
    kept = panel(*parts, spoken).pauses_kept
    assert kept is not None
    assert kept.share == 1.0 - started


def test_each_pause_of_a_turn_is_judged_for_itself() -> None:
    parts = (user(K.PART, 1, 2), user(K.PART, 3, 4), user(K.TURN, 5, 6))
    assert [one.started for one in found(*parts, cut(4.5, 4.9)).pauses] == [False, True]


def test_rates_are_by_kind_over_all_conversations() -> None:
    first = found(cut(1, 5.2), user(K.BACKCHANNEL, 5, 5.5))
    second = found(agent(1, 9), user(K.BACKCHANNEL, 5, 5.5), user(K.NOISE, 6, 7))
    rates = exact_panel([first, second]).let_pass
    assert {kind: (rate.count, rate.share) for kind, rate in rates.items()} == {
        "backchannel": (2, 0.5),
        "noise": (1, 1.0),
    }
