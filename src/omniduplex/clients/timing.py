"""What the arrival of events says about latency: raw measurements in ms, nothing derived."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

from omniduplex.clients.audio import delta_format
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.stage_timing import (
    IntervalSummary,
    interval_summary,
    reported_request_metrics,
    stage_summaries,
    token_summary,
)
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ResponseCreated,
    TextDelta,
    TranscriptDelta,
)

CLIENT_CLOCK = "client_monotonic_receive"


class Arrival(NamedTuple):
    """An event and when it came, in s on the collector's clock."""

    event: ServerEvent
    at_s: float


class Origin(NamedTuple):
    """The moment from which latencies count, in s on the collector's clock, and its name.

    `names` has the name for each latency. `chosen` tells a caller's moment from a default.
    """

    at_s: float
    names: Mapping[str, str]
    chosen: bool


def origin_of(
    after_s: float, committed_at_s: float | None, name: str | Mapping[str, str] | None
) -> Origin:
    """The commit, or else the moment that the caller looks from."""
    committed = committed_at_s is not None
    name = name or ("input_committed" if committed else "after_s")
    names = {"ttft": name, "ttfp": name} if isinstance(name, str) else name
    at_s = after_s if committed_at_s is None else committed_at_s
    return Origin(at_s, names, chosen=committed)


class AudioOutput(TypedDict):
    """How the audio of one response came; durations in ms."""

    source: str
    chunk_count: int
    response_created_to_first_audio_ms: float | None
    commit_to_first_audio_ms: float | None
    inter_chunk_interval_ms: IntervalSummary
    chunk_duration_ms: IntervalSummary
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

    `audio_generation_ms` is from the origin to the last audio. The first two are the server's own
    where it reported them and the caller named no moment; `measurement_origin` tells.
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


class SessionSummary(TypedDict):
    """Means over the turns of a session; None where no turn has the metric."""

    session_id: str | None
    audio_turn_count: int
    mean_ttft_ms: float | None
    mean_ttfp_ms: float | None
    mean_rtf: float | None


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
    found = (arrival.event.response_id for arrival in arrivals)
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
    own = [one for one in arrivals if response_id and one.event.response_id == response_id]
    moments = _moments(own, output)
    events = [one.event for one in own]
    stages = stage_summaries(events)
    created_to_audio = _ms_between(moments.created_at, moments.first_audio_at)
    gaps = [(later - earlier) * 1000 for earlier, later in pairwise(moments.audio_at)]
    tpot_ms = next((stage["tpot_ms"] for stage in stages.values() if "tpot_ms" in stage), None)
    metrics = RequestMetrics(
        source=CLIENT_CLOCK,
        measurement_origin=_origins(origin, tpot_ms),
        ttft_ms=_ms_between(origin.at_s, moments.text_at),
        ttfp_ms=_ms_between(origin.at_s, moments.first_audio_at),
        audio_generation_ms=_ms_between(origin.at_s, moments.last_audio_at),
        audio_duration_ms=sum(moments.chunks_ms),
        tpot_ms=tpot_ms,
        response_created_to_first_text_ms=_ms_between(moments.created_at, moments.text_at),
        response_created_to_first_audio_ms=created_to_audio,
    )
    if not origin.chosen:
        metrics = _as_the_server_saw(metrics, reported_request_metrics(events))
    return TimingSummary(
        response_id=response_id,
        stages=stages,
        stage0_tokens=token_summary(stages),
        audio_output=AudioOutput(
            source=CLIENT_CLOCK,
            chunk_count=len(moments.audio_at),
            response_created_to_first_audio_ms=created_to_audio,
            commit_to_first_audio_ms=_ms_between(committed_at_s, moments.first_audio_at),
            inter_chunk_interval_ms=interval_summary(gaps),
            chunk_duration_ms=interval_summary(moments.chunks_ms),
            max_chunk_gap_ms=round(max(gaps), 3) if gaps else None,
        ),
        request_metrics=metrics,
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


def summarize_session_request_metrics(
    request_metrics: Sequence[Mapping[str, Any]], *, session_id: str | None
) -> SessionSummary:
    """Average the `request_metrics` of a session's turns, one entry for each that made audio.

    A caller that wants `mean_rtf` adds an `rtf` to each; what an entry lacks does not count.
    """
    return SessionSummary(
        session_id=session_id,
        audio_turn_count=len(request_metrics),
        mean_ttft_ms=_mean((turn.get("ttft_ms") for turn in request_metrics), 3),
        mean_ttfp_ms=_mean((turn.get("ttfp_ms") for turn in request_metrics), 3),
        mean_rtf=_mean((turn.get("rtf") for turn in request_metrics), 6),
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
                chunks_ms.append(delta_format(event, output).duration_ms(len(event.delta)))
            # Audio may bring an empty transcript with it.
            case TranscriptDelta() | TextDelta() if text_at is None and event.delta:
                text_at = at_s
    return _Moments(created_at, text_at, audio_at, chunks_ms)


def _origins(origin: Origin, tpot_ms: float | None) -> dict[str, str]:
    origins = dict(origin.names)
    return origins if tpot_ms is None else {"tpot": "first_token", **origins}


def _as_the_server_saw(metrics: RequestMetrics, reported: Mapping[str, Any]) -> RequestMetrics:
    """The first outputs by the server's own measure, where it has one, and its origin."""
    origins = reported.get("measurement_origin")
    for latency in ("ttft", "ttfp"):
        found = reported.get(f"{latency}_ms")
        if isinstance(found, int | float) and isinstance(origins, Mapping) and latency in origins:
            metrics[f"{latency}_ms"] = found  # type: ignore[literal-required]
            metrics["measurement_origin"][latency] = str(origins[latency])
    return metrics


def _mean(values: Iterable[object], digits: int) -> float | None:
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    return round(statistics.fmean(numbers), digits) if numbers else None


def _ms_between(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else round((end_s - start_s) * 1000, 3)
