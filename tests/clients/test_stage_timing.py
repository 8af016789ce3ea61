from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.clients.scripted import created, done

from omniduplex.clients.duplex import ServerEvent
from omniduplex.clients.stage_timing import (
    interval_summary,
    reported_request_metrics,
    stage_summaries,
    token_summary,
)
from omniduplex.protocol.duplex import UnknownEvent, decode_event

TEXT = {
    "final_output_type": "text",
    "num_tokens_out": 4,
    "vllm_ttft_ms": 120.0,
    "vllm_tpot_ms": 15.0,
    "vllm_itls_ms": [10.0, 14.0, 18.0],
}
STREAM = {
    "output_unit_type": "codec_chunk",
    "output_unit_count": 3,
    "serving_time_to_first_output_ms": 90.0,
    "time_per_output_unit_ms": 40.0,
    "inter_output_latencies_ms": [30.0, 50.0],
}
AUDIO = {
    "final_output_type": "audio",
    "output_unit_count": 2,
    "serving_time_to_first_output_ms": 200.0,
    "audio_generated_frames": 48000,
    "audio_duration_s": 2.0,
}
OWN = {"llm_first_token_s": 0.05, "units": 3.0, "asr_s": 0.25}


def reporting(stages: dict[str, Any]) -> ServerEvent:
    event = done("r")
    metadata = {"omniduplex": {"stage_metrics": stages}}
    return structs.replace(event, response=structs.replace(event.response, metadata=metadata))


def test_a_stage_that_writes_text_is_timed_by_the_token() -> None:
    stages = stage_summaries([reporting({"0": TEXT})])

    assert stages["0"] == {
        "source": "engine_stage_metrics",
        "output_token_count": 4,
        "ttft_ms": 120,
        "tpot_ms": 15,
        "itls_ms": [10, 14, 18],
        "inter_token_interval_ms": {"count": 3, "mean": 14, "p50": 14, "p95": 18, "max": 18},
    }
    assert token_summary(stages) == stages["0"]


def test_a_stage_that_streams_is_timed_by_the_chunk() -> None:
    assert stage_summaries([reporting({"1": STREAM})]) == {
        "1": {
            "source": "engine_stage_metrics",
            "output_unit_count": 3,
            "ttfc_ms": 90,
            "tpop_ms": 40,
            "icls_ms": [30, 50],
            "inter_chunk_interval_ms": {"count": 2, "mean": 40, "p50": 30, "p95": 50, "max": 50},
        }
    }


def test_a_stage_that_speaks_is_timed_by_the_packet() -> None:
    assert stage_summaries([reporting({"2": AUDIO})]) == {
        "2": {
            "source": "engine_stage_metrics",
            "output_unit_count": 2,
            "ttfp_ms": 200,
            "audio_generated_frames": 48000,
            "audio_duration_s": 2.0,
        }
    }


def test_what_the_contract_has_no_name_for_keeps_its_own() -> None:
    stages = stage_summaries([reporting({"0": OWN})])

    assert stages["0"] == {
        "source": "engine_stage_metrics",
        "llm_first_token_s": 0.05,
        "ttft_ms": 50,
        "output_unit_count": 3,
        "asr_s": 0.25,
    }
    assert token_summary(stages) == {"source": "engine_stage_metrics", "ttft_ms": 50}


def test_the_last_report_counts() -> None:
    events = [created("r"), reporting({"0": OWN}), reporting({"0": TEXT}), done("r")]

    assert stage_summaries(events)["0"]["output_token_count"] == 4


def test_an_event_that_is_not_known_may_report_at_its_top() -> None:
    raw = {"type": "response.progress", "response_id": "r", "stage_metrics": {"0": TEXT}}

    assert stage_summaries([UnknownEvent(type="response.progress", raw=raw)])["0"]["tpot_ms"] == 15


@pytest.mark.parametrize("runtime", ["omniduplex", "vllm_omni", "duplex_event", None])
@pytest.mark.parametrize("wire_type", ["response.created", "response.done", "response.progress"])
@pytest.mark.parametrize("of_response", [True, False])
def test_every_server_of_the_contract_is_read_wherever_it_reports(
    wire_type: str, runtime: str | None, of_response: bool
) -> None:
    stages = {"stage_metrics": {"0": TEXT}, "response_request_metrics": {"ttft_ms": 1.0}}
    metadata = {runtime: stages} if runtime else stages
    response: dict[str, Any] = {"id": "r", "status": "completed", "output": []}
    message: dict[str, Any] = {"type": wire_type, "response_id": "r", "response": response}
    if of_response:
        response["metadata"] = metadata
    else:
        message |= {"type": "response.progress", "metadata": metadata}
    events = [created("r"), decode_event(json.dumps(message)), done("r")]

    assert stage_summaries(events)["0"]["ttft_ms"] == 120
    assert reported_request_metrics(events) == {"ttft_ms": 1}


@pytest.mark.parametrize("stages", [{}, {"0": "fast"}, {"1": TEXT}])
def test_where_stage_0_told_nothing_there_are_no_tokens(stages: dict[str, Any]) -> None:
    assert token_summary(stage_summaries([reporting(stages)])) == {}


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_percentiles_are_values_in_their_order(values: list[float]) -> None:
    summary = interval_summary(values)

    assert {summary["p50"], summary["p95"]} <= {round(value, 3) for value in values}
    assert summary["p50"] <= summary["p95"] <= summary["max"] == round(max(values), 3)
    assert summary["count"] == len(values)


def test_no_intervals_are_no_spread() -> None:
    assert interval_summary([]) == {"count": 0, "mean": 0, "p50": 0, "p95": 0, "max": 0}
