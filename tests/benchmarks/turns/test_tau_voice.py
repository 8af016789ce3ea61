from __future__ import annotations

import pytest
from tests.benchmarks.turns.timelines import agent, cut, timeline, user

from omniduplex.benchmarks.turns.spans import AgentSpan, Kind, UserSpan
from omniduplex.benchmarks.turns.tau_voice import TauEvent, TauPanel, tau_events, tau_panel

K = Kind


def panel(*spans: UserSpan | AgentSpan, length_s: float = 20.0) -> TauPanel:
    return tau_panel(tau_events(timeline(*spans, length_s=length_s)))


def events(*spans: UserSpan | AgentSpan, length_s: float = 20.0) -> list[TauEvent]:
    return tau_events(timeline(*spans, length_s=length_s))


def test_an_answer_is_as_late_as_the_ticks_between() -> None:
    found = panel(user(K.TURN, 1.0, 2.0), agent(2.95, 6.0))
    # 2.95 s lies in the tick that begins at 2.8 s.
    assert found.response_latency_mean == pytest.approx(0.8)
    assert found.response_rate == 1.0


def test_a_turn_is_unanswered_only_when_the_user_speaks_again() -> None:
    found = panel(user(K.TURN, 1.0, 2.0), user(K.TURN, 6.0, 7.0), agent(8.0, 9.0))
    assert (found.response_rate, found.counts["response"]) == (0.5, 2)


def test_a_last_turn_without_answer_is_not_counted() -> None:
    found = panel(user(K.TURN, 1.0, 2.0))
    assert (found.response_rate, found.counts["response"]) == (None, 0)


def test_a_turn_that_ends_while_the_agent_speaks_waits_for_no_answer() -> None:
    found = panel(user(K.TURN, 1.0, 3.0), agent(2.0, 9.0))
    assert found.counts["response"] == 0


def test_an_agent_that_goes_on_over_an_interruption_is_owed_no_answer() -> None:
    found = panel(
        user(K.TURN, 1.0, 2.0), agent(3.0, 12.0), user(K.INTERRUPTION, 5.0, 6.0), agent(13.0, 14.0)
    )
    assert (found.response_rate, found.counts["response"], found.yield_rate) == (1.0, 1, 0.0)


def test_who_yielded_is_to_answer_the_interruption() -> None:
    found = panel(
        user(K.TURN, 1.0, 2.0), cut(3.0, 5.3), user(K.INTERRUPTION, 5.0, 6.0), agent(7.0, 9.0)
    )
    assert (found.response_rate, found.counts["response"]) == (1.0, 2)
    assert found.yield_latency_mean == pytest.approx(0.4)
    assert found.yield_rate == 1.0


def test_the_first_part_of_a_turn_waits_for_no_answer() -> None:
    found = panel(user(K.PART, 1.0, 2.0), user(K.TURN, 3.0, 4.0), agent(5.0, 6.0))
    assert (found.response_rate, found.counts["response"]) == (1.0, 1)


@pytest.mark.parametrize(("stop_s", "rate"), [(5.3, 1.0), (6.79, 1.0), (6.81, 0.0), (12.0, 0.0)])
def test_a_yield_is_silence_within_ten_ticks(stop_s: float, rate: float) -> None:
    # The tenth tick from 5.0 s begins at 6.8 s, and has to be silent.
    assert panel(cut(1.0, stop_s), user(K.INTERRUPTION, 5.0, 7.5)).yield_rate == rate


@pytest.mark.parametrize("kind", [K.BACKCHANNEL, K.VOCAL_TIC, K.NON_DIRECTED])
@pytest.mark.parametrize(("stop_s", "kept"), [(5.3, 0.0), (5.79, 0.0), (5.81, 1.0), (9.0, 1.0)])
def test_what_is_no_turn_is_let_pass_by_speaking_on_for_five_ticks(
    kind: Kind, stop_s: float, kept: float
) -> None:
    found = panel(cut(1.0, stop_s), user(kind, 5.0, 5.3))
    shares = {
        K.BACKCHANNEL: found.selectivity_backchannel,
        K.VOCAL_TIC: found.selectivity_vocal_tic,
        K.NON_DIRECTED: found.selectivity_non_directed,
    }
    assert shares[kind] == kept
    assert [share for other, share in shares.items() if other is not kind] == [None, None]


def test_an_answer_that_ends_by_itself_counts_as_stopped() -> None:
    assert panel(agent(1.0, 5.3), user(K.BACKCHANNEL, 5.0, 5.2)).selectivity_backchannel == 0.0


def test_a_recording_that_ends_is_no_silence() -> None:
    assert (
        panel(agent(1.0, 5.4), user(K.BACKCHANNEL, 5.0, 5.2), length_s=5.4).selectivity_backchannel
        == 1.0
    )


@pytest.mark.parametrize("kind", [K.VOCAL_TIC, K.NON_DIRECTED])
@pytest.mark.parametrize(("start_s", "kept"), [(1.7, 0.0), (3.5, 0.0), (3.9, 1.0), (None, 1.0)])
def test_in_silence_an_answer_within_two_seconds_is_an_error(
    kind: Kind, start_s: float | None, kept: float
) -> None:
    spans = [] if start_s is None else [agent(start_s, start_s + 1)]
    found = panel(user(kind, 1.0, 1.6), *spans)
    assert (
        found.selectivity_vocal_tic if kind is K.VOCAL_TIC else found.selectivity_non_directed
    ) == kept


def test_a_backchannel_in_silence_is_not_counted() -> None:
    assert panel(user(K.BACKCHANNEL, 1.0, 1.5), agent(2.0, 3.0)).counts["backchannel"] == 0


def test_the_agent_interrupts_where_it_begins_while_the_user_speaks() -> None:
    found = panel(
        user(K.TURN, 1.0, 4.0), cut(2.0, 2.5), agent(3.0, 3.4), agent(5.0, 6.0), user(K.PART, 8, 9)
    )
    # Two starts over one turn: the figure can be above 1.
    assert (found.agent_interruption_rate, found.counts["agent_interruption"]) == (2.0, 2)


def test_noise_and_echo_are_no_speech_of_the_user() -> None:
    assert events(user(K.NOISE, 1.0, 4.0), user(K.ECHO, 5.0, 9.0), agent(2.0, 3.0)) == []


def test_answers_that_touch_in_a_tick_are_one() -> None:
    found = panel(user(K.TURN, 0.2, 1.0), cut(2.0, 3.05), agent(3.1, 5.0))
    assert found.response_latency_mean == pytest.approx(1.0)
    assert found.counts["response"] == 1


def test_nothing_has_no_figures() -> None:
    found = tau_panel([])
    assert {getattr(found, name) for name in found.__struct_fields__ if name != "counts"} == {None}
    assert set(found.counts.values()) == {0}


def test_events_are_in_order() -> None:
    found = events(
        user(K.TURN, 1.0, 2.0),
        agent(3.0, 12.0),
        user(K.BACKCHANNEL, 5.0, 5.4),
        user(K.TURN, 13, 14),
    )
    assert [event.at_s for event in found] == sorted(event.at_s for event in found)
    assert [event.category.value for event in found] == ["response", "backchannel"]
