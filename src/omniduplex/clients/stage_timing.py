"""What a server measured of its own answers, as its events report it, by the contract's names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from omniduplex.clients.events import ServerEvent
from omniduplex.protocol.duplex import ResponseCreated, ResponseDone, UnknownEvent

STAGE_CLOCK = "engine_stage_metrics"
# What a deployment says about itself, inside the metadata of a response: here, and on the
# contract's other server.
RUNTIMES = ("omniduplex", "vllm_omni")
# Wire contract, section 12: names on the wire, and in a summary.
_RENAMED = {
    "num_tokens_out": "output_token_count",
    "vllm_ttft_ms": "ttft_ms",
    "vllm_tpot_ms": "tpot_ms",
    "vllm_itls_ms": "itls_ms",
    "time_per_output_unit_ms": "tpop_ms",
    "inter_output_latencies_ms": "icls_ms",
    "units": "output_unit_count",
}
# The first output of a stage is a packet of audio, or a chunk for the next stage.
_FIRST_OUTPUT = "serving_time_to_first_output_ms"
# Stages here report seconds.
_IN_SECONDS = {"llm_first_token_s": "ttft_ms", "tts_first_s": "ttfp_ms"}
_COUNTS = frozenset({"output_token_count", "output_unit_count", "audio_generated_frames"})
_KINDS = frozenset({"final_output_type", "output_unit_type"})
_SUMMARISED = {"itls_ms": "inter_token_interval_ms", "icls_ms": "inter_chunk_interval_ms"}
_TOKENS = frozenset(
    {
        "source",
        "output_token_count",
        "ttft_ms",
        "tpot_ms",
        "itls_ms",
        "inter_token_interval_ms",
    }
)


class IntervalSummary(TypedDict):
    """How intervals in ms are spread; percentiles are values that occurred, all 0 of none."""

    count: int
    mean: float
    p50: float
    p95: float
    max: float


def interval_summary(values_ms: Iterable[float]) -> IntervalSummary:
    """Summarise intervals in ms, to the microsecond."""
    ranked = sorted(round(value, 3) for value in values_ms)
    if not ranked:
        return IntervalSummary(count=0, mean=0.0, p50=0.0, p95=0.0, max=0.0)
    return IntervalSummary(
        count=len(ranked),
        mean=round(sum(ranked) / len(ranked), 3),
        p50=ranked[math.ceil(0.50 * len(ranked)) - 1],
        p95=ranked[math.ceil(0.95 * len(ranked)) - 1],
        max=ranked[-1],
    )


def stage_summaries(events: Sequence[ServerEvent]) -> dict[str, dict[str, Any]]:
    """What the stages of one response reported last, by stage id."""
    reported = _last(events, "stage_metrics")
    return {
        stage: _summary(metrics)
        for stage, metrics in reported.items()
        if isinstance(metrics, Mapping)
    }


def token_summary(stages: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What stage 0 said about the tokens that it wrote; nothing when it wrote none."""
    found = {name: value for name, value in stages.get("0", {}).items() if name in _TOKENS}
    return found if found.keys() > {"source"} else {}


def reported_request_metrics(events: Sequence[ServerEvent]) -> dict[str, Any]:
    """The latencies of one response as its server measured them last."""
    return dict(_last(events, "response_request_metrics"))


def _last(events: Sequence[ServerEvent], name: str) -> Mapping[str, Any]:
    for event in reversed(events):
        for place in _places(event):
            found = place.get(name)
            if isinstance(found, Mapping):
                return found
    return {}


def _places(event: ServerEvent) -> Iterator[Mapping[str, Any]]:
    """Where an event may carry metrics: in its own or its response's metadata, or one deeper."""
    if isinstance(event, ResponseCreated | ResponseDone):
        yield from _metadata(event.response.metadata)
    elif isinstance(event, UnknownEvent):
        yield event.raw
        yield from _metadata(event.raw.get("metadata"))
        if isinstance(response := event.raw.get("response"), Mapping):
            yield from _metadata(response.get("metadata"))


def _metadata(metadata: object) -> Iterator[Mapping[str, Any]]:
    if not isinstance(metadata, Mapping):
        return
    yield metadata
    for name in (*RUNTIMES, "duplex_event"):
        if isinstance(inner := metadata.get(name), Mapping):
            yield inner


def _summary(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """A stage's metrics; those that the contract has no name for keep their own."""
    shown: dict[str, Any] = {"source": STAGE_CLOCK}
    for name, value in metrics.items():
        if name in _KINDS:
            continue
        if name in _IN_SECONDS and isinstance(value, int | float):
            shown[name] = value
            shown[_IN_SECONDS[name]] = round(value * 1000, 3)
            continue
        if name == _FIRST_OUTPUT:
            name = "ttfp_ms" if metrics.get("final_output_type") == "audio" else "ttfc_ms"
        name = _RENAMED.get(name, name)
        shown[name] = int(value) if name in _COUNTS and isinstance(value, float) else value
    for name, summarised_as in _SUMMARISED.items():
        if isinstance(intervals := shown.get(name), Sequence):
            shown[summarised_as] = interval_summary(intervals)
    return shown
