from __future__ import annotations

import pytest

from omniduplex.benchmarks.turns.scenarios import QUICK, SCENARIOS, Anchor, Scenario
from omniduplex.benchmarks.turns.spans import DISTURBANCES, ENDS_TURN, Kind
from omniduplex.benchmarks.turns.speech import VOICES

ids = [scenario.name for scenario in SCENARIOS]


def test_there_are_enough_and_their_names_are_their_own() -> None:
    assert len(SCENARIOS) >= 12
    assert len(VOICES) >= 4
    assert len(set(ids)) == len(ids)
    assert set(QUICK) < set(ids)


def test_every_kind_of_user_is_there() -> None:
    kinds = {cue.kind for scenario in SCENARIOS for cue in scenario.cues}
    assert kinds == set(Kind) - {Kind.ECHO}
    assert any(scenario.echo for scenario in SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=ids)
def test_nothing_waits_for_an_answer_to_what_was_never_asked(scenario: Scenario) -> None:
    asked = False
    for cue in scenario.cues:
        assert asked or cue.at not in (Anchor.AGENT_START, Anchor.AGENT_END)
        asked = asked or cue.kind in ENDS_TURN


@pytest.mark.parametrize("scenario", SCENARIOS, ids=ids)
def test_what_the_agent_should_let_pass_has_the_time_to_show_it(scenario: Scenario) -> None:
    last = scenario.cues[-1]
    if last.kind in DISTURBANCES:
        # 2 s: the longest window of any measure, and the tick that it ends in.
        assert scenario.tail_s >= 2.5


def test_pauses_are_as_long_as_people_think() -> None:
    pauses = [
        later.after_ms
        for scenario in SCENARIOS
        for cue, later in zip(scenario.cues, scenario.cues[1:], strict=False)
        if cue.kind is Kind.PART
    ]
    assert sorted(pauses) == [600, 1200]
