from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.clients.scripted import audio, created, done, words

from omniduplex.clients.duplex import (
    EventCollector,
    ServerEvent,
    summarize_session_request_metrics,
)
from omniduplex.protocol.duplex import ResponseDone

STAGES = {
    "0": {"llm_first_token_s": 0.05, "tpot_ms": 12.5, "at_prompt": 7.0},
    "1": {"tts_first_s": 0.02, "units": 3.0},
}


def measured(name: str, stages: dict[str, Any]) -> ResponseDone:
    event = done(name)
    return with_metadata(event, {"omniduplex": {"stage_metrics": stages}})


def with_metadata(event: ResponseDone, metadata: dict[str, Any]) -> ResponseDone:
    return structs.replace(event, response=structs.replace(event.response, metadata=metadata))


def collected(*arrivals: tuple[float, ServerEvent]) -> EventCollector:
    moments = iter(at_s for at_s, _ in arrivals)
    collector = EventCollector(now=lambda: next(moments))
    for _, event in arrivals:
        collector.add(event)
    return collector


@pytest.fixture
def collector() -> EventCollector:
    """An answer that was there before, then two: 100 ms, 50 ms and 100 ms chunks at 24 kHz."""
    return collected(
        (1.0, created("old")),
        (1.5, audio("old", bytes(4800))),
        (10.25, created("one")),
        (10.5, audio("one", bytes(4800))),
        (10.5, words("one", "")),
        (10.75, audio("one", bytes(2400))),
        (11.0, words("one", "Hello.")),
        (11.5, measured("one", STAGES)),
        (12.0, created("two")),
        (12.5, audio("two", bytes(4800))),
        (13.0, done("two")),
    )


def test_latencies_count_from_the_commit(collector: EventCollector) -> None:
    summary = collector.timing_summary(after_s=10.0, input_committed_at_s=10.0)

    assert summary["response_id"] == "one"
    assert summary["request_metrics"] == {
        "source": "client_monotonic_receive",
        "measurement_origin": {
            "ttft": "input_committed",
            "ttfp": "input_committed",
            "tpot": "first_token",
        },
        "ttft_ms": 1000,
        "ttfp_ms": 500,
        "audio_generation_ms": 750,
        "audio_duration_ms": 150,
        "tpot_ms": 12.5,
        "response_created_to_first_text_ms": 750,
        "response_created_to_first_audio_ms": 250,
    }


def test_the_audio_has_its_cadence(collector: EventCollector) -> None:
    summary = collector.timing_summary(after_s=10.0, input_committed_at_s=10.125)

    assert summary["audio_output"] == {
        "source": "client_monotonic_receive",
        "chunk_count": 2,
        "response_created_to_first_audio_ms": 250,
        "commit_to_first_audio_ms": 375,
        "inter_chunk_interval_ms": {"count": 1, "mean": 250, "p50": 250, "p95": 250, "max": 250},
        "chunk_duration_ms": {"count": 2, "mean": 75, "p50": 50, "p95": 100, "max": 100},
        "max_chunk_gap_ms": 250,
    }


def test_a_response_is_named_or_the_first_one_after_a_moment(collector: EventCollector) -> None:
    named = collector.timing_summary(after_s=10.0, response_id="two", measurement_origin="start")
    later = collector.timing_summary(after_s=11.75)

    assert named["response_id"] == later["response_id"] == "two"
    assert named["request_metrics"]["ttfp_ms"] == 2500
    assert named["request_metrics"]["measurement_origin"] == {"ttft": "start", "ttfp": "start"}
    assert later["request_metrics"]["measurement_origin"]["ttfp"] == "after_s"
    assert later["stages"] == {}
    assert later["audio_output"]["commit_to_first_audio_ms"] is None


def test_the_caller_names_the_moment_for_each_latency(collector: EventCollector) -> None:
    names = {"ttft": "first word", "ttfp": "first sound"}
    summary = collector.timing_summary(
        after_s=10.0, input_committed_at_s=10.0, response_id="two", measurement_origin=names
    )

    assert summary["request_metrics"]["measurement_origin"] == names


@pytest.mark.parametrize("place", ["omniduplex", "duplex_event", None])
def test_without_a_commit_the_servers_own_figures_go_first(place: str | None) -> None:
    metrics = {
        "ttft_ms": 120.0,
        "ttfp_ms": 180.0,
        "measurement_origin": {"ttft": "commit accepted", "ttfp": "commit accepted"},
    }
    reported = {"response_request_metrics": metrics}
    ended = with_metadata(done("one"), reported if place is None else {place: reported})
    collector = collected((1.0, created("one")), (1.5, audio("one", bytes(4800))), (2.0, ended))

    seen = collector.timing_summary(after_s=1.0, input_committed_at_s=1.0)["request_metrics"]
    assert (seen["ttft_ms"], seen["ttfp_ms"]) == (None, 500)
    told = collector.timing_summary(after_s=1.0)["request_metrics"]
    assert (told["ttft_ms"], told["ttfp_ms"]) == (120, 180)
    assert told["measurement_origin"] == metrics["measurement_origin"]
    assert told["audio_generation_ms"] == 500


def test_where_nothing_came_nothing_is_said(collector: EventCollector) -> None:
    summary = collector.timing_summary(after_s=20.0, input_committed_at_s=20.0)

    assert summary["response_id"] is None
    assert summary["audio_output"]["chunk_count"] == 0
    assert summary["audio_output"]["max_chunk_gap_ms"] is None
    assert summary["request_metrics"]["ttft_ms"] is None
    assert summary["request_metrics"]["audio_generation_ms"] is None


def test_all_responses_after_a_moment_count_together(collector: EventCollector) -> None:
    assert collector.global_timing_summary(after_s=10.0, input_committed_at_s=10.0) == {
        "source": "client_monotonic_receive",
        "response_ids": ["one", "two"],
        "measurement_origin": {"ttft": "input_committed", "ttfp": "input_committed"},
        "ttft_ms": 1000,
        "ttfp_ms": 500,
        "audio_generation_ms": 2500,
        "audio_duration_ms": 250,
    }
    assert collector.output_sample_rate_hz == 24000


def test_a_session_is_summed_up_by_its_means() -> None:
    turns: list[dict[str, Any]] = [
        {"ttft_ms": 100.0, "ttfp_ms": 200.0, "rtf": 0.5},
        {"ttft_ms": 300.0, "ttfp_ms": 401.0, "rtf": 0.7},
        {"ttft_ms": None},
    ]

    assert summarize_session_request_metrics(turns, session_id="s") == {
        "session_id": "s",
        "audio_turn_count": 3,
        "mean_ttft_ms": 200,
        "mean_ttfp_ms": 300.5,
        "mean_rtf": 0.6,
    }
    assert summarize_session_request_metrics([], session_id=None)["mean_ttfp_ms"] is None
