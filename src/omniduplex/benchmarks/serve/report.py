"""What is told of a load: figures over all its answers, each with its origin."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import msgspec

from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.serve.answer import Answer
from omniduplex.benchmarks.serve.caller import Call
from omniduplex.benchmarks.serve.load import Level
from omniduplex.benchmarks.serve.player import MS_PER_S, PREROLLS_MS
from omniduplex.benchmarks.serve.session import Backend
from omniduplex.benchmarks.summary import Summary, summarise

S_PER_MIN = 60.0
ENDED = ("completed", "incomplete")
# The turn's end is a different command in each dialect.
ORIGINS = {
    "ttft_ms": "{turn_end} handed to the client's socket -> first delta of transcript or text read,"
    " on the client's clock",
    "ttfp_ms": "{turn_end} handed to the client's socket -> first audio delta read, on the client's"
    " clock",
    "generation_ms": "{turn_end} handed to the client's socket -> last audio delta read, on the"
    " client's clock",
    "rtf": "generation_ms / duration of the answer's audio",
    "gap_ms": "an audio delta read -> the next one of the same answer read, on the client's clock",
    "underruns": "first audio delta read + pre-roll = the player starts; it waits for the pre-roll"
    " again after each gap, on the client's clock",
    "stages": "as each stage of the server measured it, on the server's clock",
    "latest_chunk_ms": "a microphone's chunk due -> handed to the client's socket: how late the"
    " load itself was, on the client's clock",
}


class Continuity(msgspec.Struct, frozen=True, kw_only=True):
    """What a player with this pre-roll made of all answers."""

    preroll_ms: int
    underruns: int
    gap_ms: float
    underruns_per_min: float
    """Per minute of speech."""
    gap_ms_per_min: float


class LevelReport(msgspec.Struct, frozen=True, kw_only=True):
    """One load; a figure is None when no answer has it."""

    level: Level
    seconds: float
    sessions_failed: int
    errors: dict[str, int]
    """How often which reason ended a session."""
    answers_ended: int
    answers_failed: int
    speech_min: float
    ttft_ms: Summary | None
    ttfp_ms: Summary | None
    generation_ms: Summary | None
    rtf: Summary | None
    gap_ms: Summary | None
    continuity: tuple[Continuity, ...]
    stages: dict[str, dict[str, Summary]]
    latest_chunk_ms: Summary | None
    answers: tuple[Answer, ...]


class ServeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the benchmark found."""

    benchmark: Literal["serve"] = "serve"
    machine: Machine
    load_after: tuple[float, float, float]
    backend: Backend
    model: str
    url: str | None
    """None: the server was started for the measurement, on the same machine."""
    dataset: str
    questions_per_session: int
    seed: int
    measurement_origin: dict[str, str]
    levels: tuple[LevelReport, ...]


def measurement_origin(turn_end: str) -> dict[str, str]:
    """From when to when each figure runs, and on whose clock."""
    return {name: text.format(turn_end=turn_end) for name, text in ORIGINS.items()}


def report_level(level: Level, calls: Sequence[Call], seconds: float) -> LevelReport:
    """Put the calls of one load together."""
    answers = [answer for call in calls for answer in call.answers]
    ended = [answer for answer in answers if answer.status in ENDED]
    errors: dict[str, int] = defaultdict(int)
    for call in calls:
        if call.error is not None:
            errors[call.error] += 1
    return LevelReport(
        level=level,
        seconds=seconds,
        sessions_failed=sum(errors.values()),
        errors=dict(errors),
        answers_ended=len(ended),
        answers_failed=len(answers) - len(ended),
        speech_min=_speech_min(ended),
        ttft_ms=summarise([answer.ttft_ms for answer in ended]),
        ttfp_ms=summarise([answer.ttfp_ms for answer in ended]),
        generation_ms=summarise([answer.generation_ms for answer in ended]),
        rtf=summarise([answer.rtf for answer in ended]),
        gap_ms=summarise(list(itertools.chain.from_iterable(one.gaps_ms for one in ended))),
        continuity=_continuity(ended),
        stages=_stages(ended),
        latest_chunk_ms=summarise([call.latest_chunk_ms for call in calls if call.answers]),
        answers=tuple(answers),
    )


def _speech_min(answers: Sequence[Answer]) -> float:
    return sum(answer.audio_ms for answer in answers) / MS_PER_S / S_PER_MIN


def _continuity(answers: Sequence[Answer]) -> tuple[Continuity, ...]:
    spoken = [answer for answer in answers if answer.playback]
    minutes = _speech_min(spoken)
    if not minutes:
        return ()
    found = []
    for index, preroll_ms in enumerate(PREROLLS_MS):
        played = [answer.playback[index] for answer in spoken]
        underruns, gap_ms = sum(p.underruns for p in played), sum(p.gap_ms for p in played)
        found.append(
            Continuity(
                preroll_ms=preroll_ms,
                underruns=underruns,
                gap_ms=gap_ms,
                underruns_per_min=underruns / minutes,
                gap_ms_per_min=gap_ms / minutes,
            )
        )
    return tuple(found)


def _stages(answers: Sequence[Answer]) -> dict[str, dict[str, Summary]]:
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        for stage, metrics in answer.stages.items():
            for name, value in metrics.items():
                values[stage][name].append(value)
    return {
        stage: {name: known for name, of in metrics.items() if (known := summarise(of))}
        for stage, metrics in values.items()
    }
