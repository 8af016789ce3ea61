"""Which part of an answer's latency is the framework's own, and which its models'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class StageTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What the stages say of one answer, by their names for it.

    Durations are in seconds; `at_` times are readings of the monotonic clock that all processes
    of one machine share.
    """

    hold_s: float | None = None
    asr_s: float | None = None
    eot_s: float | None = None
    llm_first_token_s: float | None = None
    llm_first_clause_s: float | None = None
    tts_first_s: float | None = None
    at_turn_audio: float | None = None
    at_turn_end: float | None = None
    at_prompt: float | None = None
    at_first_clause: float | None = None
    at_first_clause_in: float | None = None
    at_first_audio_out: float | None = None


class OwnShare(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the critical path in which no model was at work."""

    audio_in_s: float
    """Client to listening stage: the audio that ended the turn."""
    between_stages_s: float
    """Ear to language model, and language model to voice."""
    audio_out_s: float
    """Stage to client: the first audio."""
    total_s: float
    drafted: bool
    """Whether the answer was begun before the turn had ended."""


class _Runtime(msgspec.Struct, frozen=True):
    stage_metrics: dict[str, dict[str, float]] = {}


class _DoneMetadata(msgspec.Struct, frozen=True):
    omniduplex: _Runtime = _Runtime()


def stage_times(metadata: Mapping[str, Any] | None) -> StageTimes:
    """The stages' times in the metadata of `response.done`; raises msgspec.ValidationError."""
    stages = msgspec.convert(metadata or {}, _DoneMetadata).omniduplex.stage_metrics
    return msgspec.convert(
        {name: value for metrics in stages.values() for name, value in metrics.items()}, StageTimes
    )


def own_share(times: StageTimes, *, sent_at: float, received_at: float) -> OwnShare | None:
    """The share of a turn whose last audio the client sent at `sent_at` (monotonic, s).

    `received_at` is when the client had the answer's first audio. None when a stage did not report
    a time that is needed. docs/benchmarks.md derives the formula.
    """
    heard_at, ended_at = times.at_turn_audio, times.at_turn_end
    prompt_at, spoken_at = times.at_prompt, times.at_first_audio_out
    clause_at, clause_in_at = times.at_first_clause, times.at_first_clause_in
    if heard_at is None or ended_at is None or prompt_at is None:
        return None
    if clause_at is None or clause_in_at is None or spoken_at is None:
        return None
    drafted = prompt_at < ended_at
    clause_hop = clause_in_at - clause_at
    if not drafted:
        between = prompt_at - ended_at + clause_hop
    elif spoken_at > ended_at:
        # Nobody notes when a draft leaves the ear; its way to the language model is the way of
        # the clause to the voice: stage, session, stage.
        between = 2 * clause_hop
    else:
        between = 0.0  # the answer waited for the turn's end, so its own way cost nothing
    audio_in = heard_at - sent_at
    audio_out = received_at - max(ended_at, spoken_at)
    return OwnShare(
        audio_in_s=audio_in,
        between_stages_s=between,
        audio_out_s=audio_out,
        total_s=audio_in + between + audio_out,
        drafted=drafted,
    )
