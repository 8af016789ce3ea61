"""What the arrival of events says about latency: raw measurements in ms, nothing derived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

from omniduplex.clients.audio import delta_format, duration_ms
from omniduplex.clients.events import ServerEvent
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ResponseCreated,
    ResponseDone,
    TextDelta,
    TranscriptDelta,
)

CLIENT_CLOCK = "client_monotonic_receive"
STAGE_METRICS = "metadata.omniduplex.stage_metrics"
# Names of wire contract, section 12, for what stages report under names of their own, in s.
_CONTRACT_NAMES = {"llm_first_token_s": "ttft_ms", "tts_first_s": "ttfp_ms"}
_TOKEN_METRICS = frozenset({"ttft_ms", "tpot_ms", "itls_ms", "output_token_count"})


class Arrival(NamedTuple):
    """An event and when it came, in s on the collector's clock."""

    event: ServerEvent
    at_s: float


class Origin(NamedTuple):
    """The moment from which latencies count, in s on the collector's clock, and its name."""

    at_s: float
    name: str


class AudioOutput(TypedDict):
    """How the audio of one response came; durations in ms."""

    source: str
    chunk_count: int
    response_created_to_first_audio_ms: float | None
    commit_to_first_audio_ms: float | None
    inter_chunk_interval_ms: list[float]
    chunk_duration_ms: list[float]
    max_chunk_gap_ms: float | None


class GlobalTimingSummary(TypedDict):
    """Latencies over all responses since a moment; durations in ms."""

    source: str
    response_ids: list[str]
    measurement_origin: dict[str, str]
    ttft_ms: float | None
    ttfp_ms: float | None
    audio_generation_ms: float | None
    audio_duration_ms: float


class RequestMetrics(TypedDict):
    """Latencies of one response; durations in ms, `tpot_ms` by the stage that writes text.

    `audio_generation_ms` is from the origin to the last audio.
    """

    source: str
    measurement_origin: dict[str, str]
    ttft_ms: float | None
    ttfp_ms: float | None
    audio_generation_ms: float | None
    audio_duration_ms: float
    tpot_ms: float | None
    response_created_to_first_text_ms: float | None
    response_created_to_first_audio_ms: float | None


class TimingSummary(TypedDict):
    """One response as its client saw it, and as its stages measured it."""

    response_id: str | None
    stages: dict[str, dict[str, Any]]
    stage0_tokens: dict[str, Any]
    audio_output: AudioOutput
    request_metrics: RequestMetrics


class _Moments(NamedTuple):
    """When the parts of some responses came, in s; durations in ms."""

    created_at: float | None
    text_at: float | None
    audio_at: list[float]
    chunks_ms: list[float]

    @property
    def first_audio_at(self) -> float | None:
        return self.audio_at[0] if self.audio_at else None

    @property
    def last_audio_at(self) -> float | None:
        return self.audio_at[-1] if self.audio_at else None


def responses_of(arrivals: Iterable[Arrival]) -> list[str]:
    """The responses that these events belong to, in the order of their first event."""
    found = (_response_id(arrival.event) for arrival in arrivals)
    return list(dict.fromkeys(name for name in found if name is not None))


def timing_summary(
    arrivals: Sequence[Arrival],
    response_id: str | None,
    origin: Origin,
    *,
    committed_at_s: float | None,
    output: AudioFormat,
) -> TimingSummary:
    """Summarise one response; with None, or one that nothing came of, there is nothing to say."""
    own = [arrival for arrival in arrivals if _response_id(arrival.event) == response_id]
    moments = _moments(own if response_id is not None else (), output)
    stages = _stages(own)
    created_to_audio = _ms_between(moments.created_at, moments.first_audio_at)
    gaps = [(later - earlier) * 1000 for earlier, later in pairwise(moments.audio_at)]
    tpot_ms = next((stage["tpot_ms"] for stage in stages.values() if "tpot_ms" in stage), None)
    return TimingSummary(
        response_id=response_id,
        stages=stages,
        stage0_tokens=_token_metrics(stages.get("0", {})),
        audio_output=AudioOutput(
            source=CLIENT_CLOCK,
            chunk_count=len(moments.audio_at),
            response_created_to_first_audio_ms=created_to_audio,
            commit_to_first_audio_ms=_ms_between(committed_at_s, moments.first_audio_at),
            inter_chunk_interval_ms=gaps,
            chunk_duration_ms=moments.chunks_ms,
            max_chunk_gap_ms=max(gaps, default=None),
        ),
        request_metrics=RequestMetrics(
            source=CLIENT_CLOCK,
            measurement_origin=_origins(origin, tpot_ms),
            ttft_ms=_ms_between(origin.at_s, moments.text_at),
            ttfp_ms=_ms_between(origin.at_s, moments.first_audio_at),
            audio_generation_ms=_ms_between(origin.at_s, moments.last_audio_at),
            audio_duration_ms=sum(moments.chunks_ms),
            tpot_ms=tpot_ms,
            response_created_to_first_text_ms=_ms_between(moments.created_at, moments.text_at),
            response_created_to_first_audio_ms=created_to_audio,
        ),
    )


def global_timing_summary(
    arrivals: Sequence[Arrival], origin: Origin, *, output: AudioFormat
) -> GlobalTimingSummary:
    """Summarise all responses together: the first text, the first and the last audio of any."""
    moments = _moments(arrivals, output)
    return GlobalTimingSummary(
        source=CLIENT_CLOCK,
        response_ids=responses_of(arrivals),
        measurement_origin=_origins(origin, None),
        ttft_ms=_ms_between(origin.at_s, moments.text_at),
        ttfp_ms=_ms_between(origin.at_s, moments.first_audio_at),
        audio_generation_ms=_ms_between(origin.at_s, moments.last_audio_at),
        audio_duration_ms=sum(moments.chunks_ms),
    )


def _moments(arrivals: Iterable[Arrival], output: AudioFormat) -> _Moments:
    created_at: float | None = None
    text_at: float | None = None
    audio_at: list[float] = []
    chunks_ms: list[float] = []
    for event, at_s in arrivals:
        match event:
            case ResponseCreated() if created_at is None:
                created_at = at_s
            case AudioDelta():
                audio_at.append(at_s)
                chunks_ms.append(duration_ms(delta_format(event, output), len(event.delta)))
            # Audio may bring an empty transcript with it.
            case TranscriptDelta() | TextDelta() if text_at is None and event.delta:
                text_at = at_s
    return _Moments(created_at, text_at, audio_at, chunks_ms)


def _response_id(event: ServerEvent) -> str | None:
    found = getattr(event, "response_id", None)
    return found if isinstance(found, str) else None


def _stages(arrivals: Iterable[Arrival]) -> dict[str, dict[str, Any]]:
    done = next((one.event for one in arrivals if isinstance(one.event, ResponseDone)), None)
    metadata = done.response.metadata if done is not None else None
    runtime = (metadata or {}).get("omniduplex")
    reported = runtime.get("stage_metrics") if isinstance(runtime, dict) else None
    if not isinstance(reported, dict):
        return {}
    return {
        stage: {"source": STAGE_METRICS, **_named_by_contract(metrics)}
        for stage, metrics in reported.items()
        if isinstance(metrics, dict)
    }


def _named_by_contract(metrics: dict[str, Any]) -> dict[str, Any]:
    """What the stage reported, and once more by the contract's names where it has some."""
    named = dict(metrics)
    for name, contract_name in _CONTRACT_NAMES.items():
        if isinstance(metrics.get(name), int | float):
            named[contract_name] = metrics[name] * 1000
    if "units" in metrics:
        named["output_unit_count"] = int(metrics["units"])
    return named


def _token_metrics(stage: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stage.items() if name in _TOKEN_METRICS}


def _origins(origin: Origin, tpot_ms: float | None) -> dict[str, str]:
    origins = {"ttft": origin.name, "ttfp": origin.name}
    return origins if tpot_ms is None else {**origins, "tpot": "first_token"}


def _ms_between(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else (end_s - start_s) * 1000
