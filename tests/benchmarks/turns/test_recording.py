from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from omniduplex.benchmarks.turns.agent_track import AgentTrack
from omniduplex.benchmarks.turns.recording import agent_spans, write_stereo

RATE_HZ = 1000


def tone(ms: int) -> bytes:
    return np.full(ms, 8000, dtype="<i2").tobytes()


def silence(ms: int) -> bytes:
    return bytes(2 * ms)


def spans(track: AgentTrack, length: int = 20_000) -> list[tuple[float, float, bool]]:
    found = agent_spans(track, length, RATE_HZ)
    return [(round(span.start_s, 3), round(span.end_s, 3), span.ended) for span in found]


def test_speech_is_what_is_loud() -> None:
    track = AgentTrack(0)
    track.arrive("a", silence(200) + tone(300) + silence(400), 1000)
    assert spans(track) == [(1.2, 1.5, True)]


def test_a_breath_is_part_of_the_speech_and_a_long_pause_is_not() -> None:
    track = AgentTrack(0)
    track.arrive("a", tone(300) + silence(500) + tone(300) + silence(520) + tone(300), 1000)
    assert spans(track) == [(1.0, 2.1, True), (2.62, 2.92, True)]


def test_two_answers_are_apart_however_close() -> None:
    track = AgentTrack(0)
    track.arrive("a", tone(5000), 1000)
    track.stop(2000, "a")
    track.arrive("b", tone(500), 2100)
    assert spans(track) == [(1.0, 2.0, False), (2.1, 2.6, True)]


def test_only_the_last_stretch_of_a_stopped_answer_was_stopped() -> None:
    track = AgentTrack(0)
    track.arrive("a", tone(300) + silence(900) + tone(5000), 1000)
    track.stop(3000, "a")
    assert [ended for _, _, ended in spans(track)] == [True, False]


def test_speech_that_goes_on_reaches_the_end_of_the_recording() -> None:
    track = AgentTrack(0)
    track.arrive("a", tone(300) + silence(200) + tone(300), 1000)
    assert spans(track, length=1450) == [(1.0, 1.45, True)]
    assert spans(track, length=900) == []


def test_words_are_a_share_of_the_transcript() -> None:
    track = AgentTrack(0)
    track.say_text("a", "one two three four ")
    track.say_text("a", "five six seven eight")
    track.arrive("a", tone(4000), 1000)
    track.stop(2000, "a")
    track.arrive("b", tone(2000), 5000)
    assert [span.words for span in agent_spans(track, 20_000, RATE_HZ)] == [2, 5]


def test_the_user_is_on_the_left(tmp_path: Path) -> None:
    path = tmp_path / "both.wav"
    write_stereo(path, tone(3), silence(1), RATE_HZ)
    with wave.open(str(path)) as reader:
        assert (reader.getnchannels(), reader.getframerate()) == (2, RATE_HZ)
        frames = np.frombuffer(reader.readframes(10), dtype="<i2").reshape(-1, 2)
    assert frames.tolist() == [[8000, 0]] * 3


def test_silence_alone_is_no_speech() -> None:
    track = AgentTrack(0)
    track.arrive("a", silence(1000), 0)
    assert spans(track) == []


@pytest.mark.parametrize("amplitude", [100, 260])
def test_the_level_of_speech_is_minus_45_dbfs(amplitude: int) -> None:
    track = AgentTrack(0)
    track.arrive("a", np.full(100, amplitude, dtype="<i2").tobytes(), 0)
    assert bool(spans(track)) == (amplitude > 184)
