from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.turns.timelines import agent, timeline, user

from omniduplex.benchmarks.turns.spans import DISTURBANCES, FLOOR, Kind, tick_range, ticks, turns

K = Kind


@pytest.mark.parametrize(
    ("start_s", "end_s", "found"),
    [
        (0.0, 0.2, range(1)),
        (0.2, 0.4, range(1, 2)),
        (0.6, 0.61, range(3, 4)),
        (0.19, 0.41, range(3)),
        (1.4, 1.6, range(7, 8)),
    ],
)
def test_a_stretch_has_the_ticks_that_it_touches(
    start_s: float, end_s: float, found: range
) -> None:
    assert tick_range(start_s, end_s) == found


def test_ticks_end_with_the_recording() -> None:
    assert ticks([agent(0.3, 5.0)], 0.9) == [False, True, True, True, True]


@given(st.floats(0, 50), st.floats(0.01, 10))
def test_every_moment_of_speech_is_in_a_tick_of_speech(start_s: float, length_s: float) -> None:
    found = ticks([agent(start_s, start_s + length_s)], 60.0)
    assert all(found[index] for index in tick_range(start_s, start_s + length_s))
    assert sum(found) <= length_s / 0.2 + 2


def test_a_turn_gathers_the_parts_before_it() -> None:
    spans = [
        user(K.PART, 1, 2),
        user(K.TURN, 2.6, 4),
        user(K.BACKCHANNEL, 6, 6.3),
        user(K.TURN, 9, 10),
    ]
    found = turns(spans)
    assert [(turn.start_s, turn.end_s, turn.pauses) for turn in found] == [
        (1, 4, [(2, 2.6)]),
        (9, 10, []),
    ]


def test_the_floor_is_taken_by_speech_to_the_agent_only() -> None:
    first = user(K.TURN, 0, 1)
    line = timeline(
        first, user(K.BACKCHANNEL, 2, 3), user(K.NON_DIRECTED, 4, 5), user(K.INTERRUPTION, 6, 7)
    )
    assert line.floor_after(first) == 6
    assert line.floor_after(line.user[-1]) == line.length_s


def test_a_moment_belongs_to_a_span_up_to_its_end() -> None:
    line = timeline(agent(1, 2))
    assert line.speaking_at(1) is line.agent[0]
    assert line.speaking_at(2) is None


def test_every_kind_takes_the_floor_or_disturbs() -> None:
    assert set(Kind) == FLOOR | DISTURBANCES
    assert not FLOOR & DISTURBANCES
