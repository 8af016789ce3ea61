from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.benchmarks.turns.agent_track import AgentTrack

PREROLL = 40


def pcm(samples: int, value: int = 1000) -> bytes:
    return np.full(samples, value, dtype="<i2").tobytes()


def placed(track: AgentTrack) -> list[tuple[str, int, int]]:
    return [(piece.response_id, piece.start, piece.end) for piece in track.pieces]


def test_an_answer_begins_a_preroll_after_its_first_audio() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(100), 1000)
    assert placed(track) == [("a", 1040, 1140)]
    assert (track.playing(1039), track.playing(1040), track.playing(1140)) == (False, True, False)


def test_audio_that_comes_in_time_is_played_without_a_gap() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(100), 1000)
    track.arrive("a", pcm(100), 1139)
    assert placed(track) == [("a", 1040, 1240)]
    assert track.underruns == 0


def test_audio_that_comes_late_waits_for_the_preroll_again() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(100), 1000)
    track.arrive("a", pcm(100), 1200)
    assert placed(track) == [("a", 1040, 1140), ("a", 1240, 1340)]
    assert (track.underruns, track.underrun_samples) == (1, 100)


def test_the_next_answer_waits_for_the_one_before() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(500), 0)
    track.arrive("b", pcm(100), 200)
    assert placed(track) == [("a", 40, 540), ("b", 540, 640)]
    assert track.underruns == 0


def test_a_stop_is_at_once_and_what_comes_after_it_is_not_played() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(500), 0)
    track.stop(300, "a")
    track.arrive("a", pcm(500), 310)
    assert placed(track) == [("a", 40, 300)]
    assert track.answers["a"].cut
    assert (track.heard("a", 1000), track.answers["a"].received) == (260, 1000)


def test_an_answer_that_was_stopped_in_its_preroll_is_never_heard() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(500), 0)
    track.stop(20)
    assert placed(track) == []
    assert track.onset(0) is None
    assert track.answers["a"].cut


def test_an_answer_whose_sound_is_over_is_not_cut_by_a_stop() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(100), 0)
    track.done("a")
    track.stop(200)
    assert not track.answers["a"].cut


def test_a_stop_of_all_leaves_an_answer_alone_that_has_no_audio_yet() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(500), 0)
    track.say_text("b", "Well")
    track.stop(100)
    track.arrive("b", pcm(100), 200)
    assert placed(track) == [("a", 40, 100), ("b", 240, 340)]


def test_a_stop_of_one_answer_leaves_the_next_one_playing() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(500), 0)
    track.arrive("b", pcm(100), 10)
    track.stop(200, "a")
    assert placed(track) == [("a", 40, 200), ("b", 540, 640)]


def test_the_end_is_known_when_no_more_can_come() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(500), 0)
    assert track.end_of("a") is None
    track.done("a")
    assert track.end_of("a") == 540
    track.arrive("b", pcm(500), 1000)
    track.stop(1100, "b")
    assert track.end_of("b") == 1100


def test_an_onset_is_the_first_sound_of_an_answer() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(100), 0)
    track.arrive("a", pcm(100), 500)
    track.arrive("b", pcm(100), 900)
    starts = [piece.start if (piece := track.onset(since)) else None for since in (0, 200, 941)]
    # The second piece of "a" comes after an underrun: nothing begins there.
    assert starts == [40, 940, None]


def test_the_channel_holds_what_was_played_where_it_was_played() -> None:
    track = AgentTrack(PREROLL)
    track.arrive("a", pcm(10, 16384), 0)
    found = track.samples(35, 20)
    assert found.tolist() == [0.0] * 5 + [0.5] * 10 + [0.0] * 5


@given(
    st.lists(
        st.tuples(
            st.integers(0, 300), st.sampled_from("ab"), st.sampled_from(["play", "stop", "all"])
        )
    )
)
def test_sounds_never_overlap_and_none_is_before_it_came(
    steps: list[tuple[int, str, str]],
) -> None:
    track, now = AgentTrack(PREROLL), 0
    for wait, name, what in steps:
        now += wait
        if what == "play":
            before = len(track.pieces)
            track.arrive(name, pcm(100), now)
            assert all(piece.start > now for piece in track.pieces[before:])
        else:
            track.stop(now, name if what == "stop" else None)
            assert what == "stop" or not track.playing(now)
    ends = [piece.end for piece in track.pieces]
    assert all(piece.start >= end for piece, end in zip(track.pieces[1:], ends, strict=False))
    for name, answer in track.answers.items():
        assert track.heard(name, now + 10**6) <= answer.received
