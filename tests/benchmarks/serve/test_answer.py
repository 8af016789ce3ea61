from __future__ import annotations

import pytest

from omniduplex.benchmarks.serve.answer import Arrivals, measured_stages


def test_an_answer_is_measured_from_the_end_of_the_turn() -> None:
    seen = Arrivals(asked_at=50.0)
    seen.take_text(50.2)
    seen.take_text(50.25)
    seen.take_audio(50.3, 100.0)
    seen.take_audio(50.35, 100.0)
    seen.take_audio(50.5, 100.0)
    seen.status = "completed"
    answer = seen.answer()
    assert answer.status == "completed"
    assert answer.ttft_ms == pytest.approx(200)
    assert answer.ttfp_ms == pytest.approx(300)
    assert answer.generation_ms == pytest.approx(500)
    assert answer.audio_ms == 300
    assert answer.rtf == pytest.approx(500 / 300)
    assert answer.gaps_ms == pytest.approx((50, 150))
    assert [played.preroll_ms for played in answer.playback] == [0, 100, 200]


def test_an_answer_without_audio_has_only_its_first_text() -> None:
    seen = Arrivals(asked_at=1.0)
    seen.take_text(1.5)
    answer = seen.answer()
    assert (answer.status, answer.ttft_ms) == ("no_answer", 500)
    assert (answer.ttfp_ms, answer.rtf, answer.playback) == (None, None, ())


def test_readings_of_a_stage_s_clock_are_left_out() -> None:
    assert measured_stages({"1": {"tts_first_s": 0.2, "at_prompt": 77.0}}) == {
        "1": {"tts_first_s": 0.2}
    }
