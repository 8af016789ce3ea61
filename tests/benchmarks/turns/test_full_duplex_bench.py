from __future__ import annotations

import pytest
from tests.benchmarks.turns.timelines import agent, cut, timeline, user

from omniduplex.benchmarks.turns.full_duplex_bench import (
    FdbPanel,
    backchannel_takes_over,
    fdb_findings,
    fdb_panel,
    takes_over,
)
from omniduplex.benchmarks.turns.spans import AgentSpan, Kind, UserSpan

K = Kind
PAUSED = (user(K.PART, 1.0, 2.0), user(K.TURN, 3.0, 5.0))


def panel(*spans: UserSpan | AgentSpan) -> FdbPanel:
    return fdb_panel([fdb_findings(timeline(*spans))])


@pytest.mark.parametrize(
    ("spans", "taken"),
    [
        ([], False),
        ([agent(0.0, 0.9, words=3)], False),
        ([agent(0.0, 0.9, words=4)], True),
        ([agent(0.0, 1.0, words=1)], True),
        # First word to last word, silence included.
        ([agent(0.0, 0.2, words=1), agent(0.9, 1.1, words=1)], True),
    ],
)
def test_a_takeover_is_long_or_has_many_words(spans: list[AgentSpan], taken: bool) -> None:
    assert takes_over(spans) is taken


@pytest.mark.parametrize(
    ("spans", "taken"),
    [
        ([], False),
        ([agent(0.0, 0.9, words=2)], False),
        ([agent(0.0, 0.9, words=3)], True),
        ([agent(0.0, 1.5, words=1)], True),
        # The last short one decides ...
        ([agent(0.0, 1.5, words=9), agent(2.0, 2.4, words=1)], False),
        ([agent(0.0, 0.4, words=1), agent(2.0, 3.5, words=5)], True),
        # ... but a long one ends it.
        ([agent(0.0, 3.1, words=1), agent(4.0, 4.4, words=1)], True),
    ],
)
def test_a_backchannel_of_the_agent_is_short(spans: list[AgentSpan], taken: bool) -> None:
    assert backchannel_takes_over(spans) is taken


def test_a_pause_is_taken_by_an_answer_inside_the_turn() -> None:
    assert panel(*PAUSED, agent(2.5, 6.0)).pause_takeover == 1.0
    assert panel(*PAUSED, agent(5.8, 9.0)).pause_takeover == 0.0


def test_a_start_that_is_cut_off_at_once_is_no_takeover() -> None:
    assert panel(*PAUSED, cut(2.9, 3.2, words=1), agent(6.0, 9.0)).pause_takeover == 0.0


def test_a_turn_without_pause_is_no_pause_task() -> None:
    assert panel(user(K.TURN, 1.0, 2.0), agent(1.5, 9.0)).counts["pause"] == 0


def test_a_turn_is_taken_and_its_latency_counted_from_its_end() -> None:
    found = panel(*PAUSED, agent(5.75, 9.0)).turn_taking
    assert (found.rate, found.count) == (1.0, 1)
    assert found.latency_s == pytest.approx(0.75)


def test_a_negative_latency_is_zero_in_theirs_and_itself_in_ours() -> None:
    found = panel(user(K.TURN, 1.0, 4.0), agent(3.5, 9.0)).turn_taking
    assert found.latency_s == 0.0
    assert found.unclipped_s is not None
    assert found.unclipped_s.p50 == pytest.approx(-0.5)


def test_the_mean_latency_is_over_turns_that_were_taken() -> None:
    line = timeline(user(K.TURN, 1.0, 2.0), agent(3.0, 5.0), user(K.TURN, 6.0, 7.0))
    found = fdb_panel([fdb_findings(line)]).turn_taking
    assert (found.rate, found.latency_s) == (0.5, 1.0)


def test_what_was_silenced_before_the_turn_ended_is_no_answer_to_it() -> None:
    found = panel(user(K.TURN, 1.0, 6.0), cut(2.0, 4.0), agent(7.0, 9.0)).turn_taking
    assert found.latency_s == pytest.approx(1.0)


def test_an_answer_that_the_user_cuts_off_is_no_turn_task() -> None:
    found = panel(
        user(K.TURN, 1.0, 2.0),
        cut(3.0, 3.6, words=2),
        user(K.INTERRUPTION, 3.5, 5.0),
        agent(6.2, 8.0),
    )
    assert found.turn_taking.count == 0
    assert found.interruption.rate == 1.0
    assert found.interruption.latency_s == pytest.approx(1.2)


def test_the_old_answer_is_no_reply_to_an_interruption() -> None:
    found = panel(user(K.TURN, 1.0, 2.0), agent(3.0, 19.0), user(K.INTERRUPTION, 5.0, 6.0))
    assert (found.interruption.rate, found.interruption.latency_s) == (0.0, None)


def test_backchannels_are_counted_by_second_of_the_users_turns() -> None:
    found = panel(user(K.TURN, 0.0, 10.0), agent(2.0, 2.4, words=1), agent(5.0, 5.3, words=1))
    assert (found.backchannel_takeover, found.backchannels_per_s) == (0.0, 0.2)


def test_nothing_has_no_figures() -> None:
    found = fdb_panel([])
    assert found.pause_takeover is found.turn_taking.rate is found.backchannels_per_s is None
