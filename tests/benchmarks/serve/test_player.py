from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.benchmarks.serve.player import Chunk, play

EVEN = [Chunk(10.0 + 0.08 * n, 80.0) for n in range(5)]


def test_audio_that_comes_as_fast_as_it_sounds_has_no_gap() -> None:
    for preroll_ms in (100, 200):
        played = play(EVEN, preroll_ms)
        assert (played.underruns, played.gap_ms) == (0, 0.0)
        assert played.ends_s == pytest.approx(10.4 + preroll_ms / 1000)


def test_a_late_chunk_is_a_gap_unless_the_preroll_covers_it() -> None:
    late = [Chunk(10.0, 80.0), Chunk(10.23, 80.0)]
    bare, covered = play(late, 0), play(late, 200)
    assert bare.underruns == 1
    assert bare.gap_ms == pytest.approx(150)
    assert (covered.underruns, covered.gap_ms) == (0, 0.0)


def test_after_a_gap_the_player_waits_for_the_preroll_again() -> None:
    # 50 ms were too few, and 100 more pass before the sound goes on.
    played = play([Chunk(10.0, 80.0), Chunk(10.23, 80.0), Chunk(10.4, 80.0)], 100)
    assert played.underruns == 1
    assert played.gap_ms == pytest.approx(150)
    assert played.ends_s == pytest.approx(10.23 + 0.1 + 0.16)


def test_an_answer_that_comes_at_once_plays_to_its_end() -> None:
    played = play([Chunk(10.0, 80.0)] * 10, 0)
    assert played.underruns == 0
    assert played.ends_s == pytest.approx(10.8)


def test_nothing_cannot_be_played() -> None:
    with pytest.raises(ValueError, match="without audio"):
        play([], 0)


@given(
    st.lists(
        st.tuples(st.floats(0, 2), st.floats(1, 500)),
        min_size=1,
    ),
    st.sampled_from([0, 100, 200]),
)
def test_the_time_from_start_to_end_is_the_sound_and_the_gaps(
    steps: list[tuple[float, float]], preroll_ms: int
) -> None:
    at_s, chunks = 5.0, []
    for pause_s, ms in steps:
        at_s += pause_s
        chunks.append(Chunk(at_s, ms))
    played = play(chunks, preroll_ms)
    sound_ms = sum(chunk.ms for chunk in chunks)
    took_ms = (played.ends_s - chunks[0].at_s) * 1000 - preroll_ms
    assert took_ms == pytest.approx(sound_ms + played.gap_ms, abs=1e-3)
    assert played.underruns < len(chunks)
    assert played.gap_ms >= played.underruns * preroll_ms
