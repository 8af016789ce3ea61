from __future__ import annotations

import pytest

from omniduplex.benchmarks.serve.answer import Answer, Arrivals
from omniduplex.benchmarks.serve.caller import Call
from omniduplex.benchmarks.serve.load import Level
from omniduplex.benchmarks.serve.report import ORIGINS, measurement_origin, report_level

LEVEL = Level(sessions=3, concurrency=3)


def answer(late_s: float = 0.0, status: str = "completed", units: float = 4.0) -> Answer:
    """Half a minute of audio in two chunks; the second comes `late_s` after the first has ended."""
    seen = Arrivals(asked_at=0.0, status=status, stages={"0": {"units": units}})
    seen.take_text(0.5)
    seen.take_audio(1.0, 15_000.0)
    seen.take_audio(16.0 + late_s, 15_000.0)
    return seen.answer()


def test_gaps_are_told_by_minute_of_speech_for_each_preroll() -> None:
    found = report_level(LEVEL, [Call(answers=(answer(), answer(late_s=0.15)))], 20.0)
    assert found.speech_min == pytest.approx(1.0)
    told = [(one.preroll_ms, one.underruns, one.underruns_per_min) for one in found.continuity]
    assert told == [(0, 1, 1.0), (100, 1, 1.0), (200, 0, 0.0)]
    assert found.continuity[0].gap_ms_per_min == pytest.approx(150)


def test_answers_that_failed_are_counted_and_not_measured() -> None:
    calls = [Call(answers=(answer(), answer(status="failed")))]
    found = report_level(LEVEL, calls, 20.0)
    assert (found.answers_ended, found.answers_failed) == (1, 1)
    assert found.ttft_ms is not None
    assert (found.ttft_ms.count, found.ttft_ms.p50) == (1, 500)
    assert len(found.answers) == 2


def test_lost_sessions_are_counted_by_their_reason() -> None:
    calls = [Call(error="busy"), Call(error="busy"), Call(error="gone"), Call(answers=(answer(),))]
    found = report_level(LEVEL, calls, 20.0)
    assert (found.sessions_failed, found.errors) == (3, {"busy": 2, "gone": 1})


def test_stages_are_summed_up_by_stage_and_name() -> None:
    calls = [Call(answers=(answer(units=2.0), answer(units=6.0)))]
    found = report_level(LEVEL, calls, 20.0).stages["0"]["units"]
    assert (found.count, found.min, found.max) == (2, 2.0, 6.0)


def test_a_load_without_an_answer_has_no_figures() -> None:
    found = report_level(LEVEL, [Call(error="busy")], 1.0)
    assert (found.ttfp_ms, found.rtf, found.continuity, found.latest_chunk_ms) == (
        None,
        None,
        (),
        None,
    )


def test_each_figure_names_where_it_begins() -> None:
    origins = measurement_origin("the commit")
    assert set(origins) == set(ORIGINS)
    assert origins["ttfp_ms"].startswith("the commit handed to the client's socket")
    assert all("clock" in text for name, text in origins.items() if name != "rtf")
