"""`omniduplex bench turns`, once its options have been read."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Literal, get_args

import msgspec
from rich.console import Console

from omniduplex.benchmarks.machine import describe_machine
from omniduplex.benchmarks.turns.conversation import CHUNK_MS, PREROLL_MS
from omniduplex.benchmarks.turns.line import Dialect
from omniduplex.benchmarks.turns.report import Parameters, TurnsReport, report_turns
from omniduplex.benchmarks.turns.run import TurnsPlan, hold_conversations
from omniduplex.benchmarks.turns.scenarios import QUICK, SCENARIOS, Scenario
from omniduplex.benchmarks.turns.speech import VOICES
from omniduplex.benchmarks.turns.tables import show_conversation, show_turns
from omniduplex.clients import MonotonicClock
from omniduplex.protocol.duplex import OverlapPolicy


class ChoiceError(Exception):
    """The options name something that is not there."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; no names mean all."""

    model: str
    dialect: Dialect
    policy: str
    vad: Literal["server_vad", "semantic_vad", "none"]
    scenarios: tuple[str, ...]
    voices: tuple[str, ...]
    quick: bool
    parallel: int
    seed: int
    out: Path | None
    api_key: str | None

    def check(self) -> None:
        """Raise ChoiceError unless everything named is there."""
        known = [scenario.name for scenario in SCENARIOS]
        for names, there, what in (
            (self.scenarios, known, "scenario"),
            (self.voices, list(VOICES), "voice"),
            # A server takes a policy that it does not know for `listen_only`.
            ((self.policy,), list(get_args(OverlapPolicy)), "policy"),
        ):
            for name in names:
                if name not in there:
                    raise ChoiceError(f"no {what} {name}; there are {', '.join(there)}")
        if self.vad == "none":
            raise ChoiceError("turns are ended by the server here: server_vad or semantic_vad")

    def chosen_scenarios(self) -> list[Scenario]:
        """The scenarios, in the order in which they are listed."""
        names = self.scenarios or (QUICK if self.quick else ())
        return [scenario for scenario in SCENARIOS if not names or scenario.name in names]

    def chosen_voices(self) -> tuple[str, ...]:
        """The voices."""
        return self.voices or (VOICES[:1] if self.quick else VOICES)


def measure_turns(choice: Choice, url: str, console: Console, *, started_here: bool) -> TurnsReport:
    """Hold the conversations, show the figures and return the report."""
    assert choice.vad != "none"
    machine, clock = describe_machine(), MonotonicClock()
    plan = TurnsPlan(
        url=url,
        model=choice.model,
        dialect=choice.dialect,
        policy=choice.policy,
        vad=choice.vad,
        scenarios=choice.chosen_scenarios(),
        voices=choice.chosen_voices(),
        seed=choice.seed,
        parallel=choice.parallel,
        out=choice.out,
        api_key=choice.api_key,
    )
    started_at = clock.now()
    held = asyncio.run(hold_conversations(plan, clock, lambda one: show_conversation(console, one)))
    report = report_turns(
        held,
        machine=machine,
        load_after=os.getloadavg(),
        seconds=clock.now() - started_at,
        parameters=Parameters(
            url=None if started_here else url,
            model=choice.model,
            dialect=choice.dialect,
            policy=choice.policy,
            vad=choice.vad,
            seed=choice.seed,
            parallel=choice.parallel,
            voices=tuple(plan.voices),
            scenarios=tuple(scenario.name for scenario in plan.scenarios),
            chunk_ms=CHUNK_MS,
            preroll_ms=PREROLL_MS,
        ),
    )
    show_turns(console, report)
    return report
