"""What the benchmark found, from single moments to totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.turns.exact import ExactPanel, Findings, exact_panel, find
from omniduplex.benchmarks.turns.full_duplex_bench import (
    FdbFindings,
    FdbPanel,
    fdb_findings,
    fdb_panel,
)
from omniduplex.benchmarks.turns.line import Dialect
from omniduplex.benchmarks.turns.recording import Recording, TimedEvent
from omniduplex.benchmarks.turns.spans import Timeline
from omniduplex.benchmarks.turns.stream_time import (
    StreamFindings,
    StreamPanel,
    stream_findings,
    stream_panel,
)
from omniduplex.benchmarks.turns.tau_voice import TauEvent, TauPanel, tau_events, tau_panel


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    url: str | None
    """None: a server of our own was started."""
    model: str
    dialect: Dialect
    policy: str
    vad: str
    seed: int
    parallel: int
    voices: tuple[str, ...]
    scenarios: tuple[str, ...]
    chunk_ms: int
    preroll_ms: int


class Panels(msgspec.Struct, frozen=True, kw_only=True):
    """All measures over some conversations."""

    exact: ExactPanel
    tau_voice: TauPanel
    full_duplex_bench: FdbPanel
    stream_time: StreamPanel


class ConversationReport(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation: what happened, and what of it counts."""

    scenario: str
    voice: str
    policy_in_force: str | None
    timeline: Timeline
    transcripts: tuple[str, ...]
    missed: tuple[str, ...]
    """Cues whose moment never came: the answer was too short, or there was none."""
    errors: tuple[str, ...]
    underruns: int
    underrun_ms: float
    latest_chunk_ms: float
    exact: Findings
    tau_voice: tuple[TauEvent, ...]
    full_duplex_bench: FdbFindings
    stream_time: StreamFindings
    events: tuple[TimedEvent, ...]


class TurnsReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run."""

    benchmark: Literal["turns"] = "turns"
    machine: Machine
    load_after: tuple[float, float, float]
    seconds: float
    parameters: Parameters
    totals: Panels
    by_scenario: dict[str, Panels]
    by_voice: dict[str, Panels]
    conversations: tuple[ConversationReport, ...]


def report_conversation(
    scenario: str, voice: str, policy_in_force: str | None, recording: Recording
) -> ConversationReport:
    """Measure one conversation."""
    timeline = recording.timeline()
    track, exact = recording.agent, find(timeline)
    return ConversationReport(
        scenario=scenario,
        voice=voice,
        policy_in_force=policy_in_force,
        timeline=timeline,
        transcripts=tuple(recording.transcripts()),
        missed=recording.missed,
        errors=recording.errors,
        underruns=track.underruns,
        underrun_ms=track.underrun_samples / recording.rate_hz * 1000,
        latest_chunk_ms=recording.latest_chunk_ms,
        exact=exact,
        tau_voice=tuple(tau_events(timeline)),
        full_duplex_bench=fdb_findings(timeline),
        stream_time=stream_findings(timeline, exact, recording.events),
        events=recording.events,
    )


def panels(conversations: Sequence[ConversationReport]) -> Panels:
    """All measures over these conversations."""
    return Panels(
        exact=exact_panel([one.exact for one in conversations]),
        tau_voice=tau_panel([event for one in conversations for event in one.tau_voice]),
        full_duplex_bench=fdb_panel([one.full_duplex_bench for one in conversations]),
        stream_time=stream_panel([one.stream_time for one in conversations]),
    )


def report_turns(
    conversations: Sequence[ConversationReport],
    *,
    machine: Machine,
    load_after: tuple[float, float, float],
    seconds: float,
    parameters: Parameters,
) -> TurnsReport:
    """Put conversations together."""

    def where(scenario: str | None = None, voice: str | None = None) -> Panels:
        return panels(
            [
                one
                for one in conversations
                if scenario in (None, one.scenario) and voice in (None, one.voice)
            ]
        )

    return TurnsReport(
        machine=machine,
        load_after=load_after,
        seconds=seconds,
        parameters=parameters,
        totals=where(),
        by_scenario={name: where(scenario=name) for name in parameters.scenarios},
        by_voice={name: where(voice=name) for name in parameters.voices},
        conversations=tuple(conversations),
    )
