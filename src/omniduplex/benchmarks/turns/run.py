"""Holds the conversations, one after the other or some at once, and keeps what was recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from omniduplex.benchmarks.turns.conversation import Conversation
from omniduplex.benchmarks.turns.duplex_line import DuplexLine
from omniduplex.benchmarks.turns.line import Dialect, Line, SessionWish
from omniduplex.benchmarks.turns.openai_line import OpenAILine
from omniduplex.benchmarks.turns.picture import draw
from omniduplex.benchmarks.turns.recording import Recording, write_stereo
from omniduplex.benchmarks.turns.report import ConversationReport, report_conversation
from omniduplex.benchmarks.turns.scenarios import Scenario
from omniduplex.benchmarks.turns.speech import load_clips
from omniduplex.clients import Clock

LONG_ANSWERS = "You are a voice assistant. Explain in about six sentences of plain English."
SHORT_ANSWERS = "You are a voice assistant. Answer in one short sentence of plain English."


class TurnsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations to hold, where, and how."""

    url: str
    model: str
    dialect: Dialect
    policy: str
    vad: Literal["server_vad", "semantic_vad"]
    scenarios: Sequence[Scenario]
    voices: Sequence[str]
    seed: int
    parallel: int
    out: Path | None
    """Where WAVs and pictures go."""
    api_key: str | None = None


async def hold_conversations(
    plan: TurnsPlan, clock: Clock, on_conversation: Callable[[ConversationReport], None]
) -> list[ConversationReport]:
    """Hold all, and tell each when it is over; they come back in the order of the plan.

    Raises:
        LineError, DuplexClientError: a session could not be opened (in a group).
    """
    if plan.out is not None:
        plan.out.mkdir(parents=True, exist_ok=True)
    free = asyncio.Semaphore(plan.parallel)

    async def hold(scenario: Scenario, voice: str) -> ConversationReport:
        async with free:
            report = await _hold(plan, clock, scenario, voice)
        on_conversation(report)
        return report

    async with asyncio.TaskGroup() as tasks:
        held = [
            tasks.create_task(hold(scenario, voice), name=f"{scenario.name} {voice}")
            for scenario in plan.scenarios
            for voice in plan.voices
        ]
    return [task.result() for task in held]


async def _hold(
    plan: TurnsPlan, clock: Clock, scenario: Scenario, voice: str
) -> ConversationReport:
    wish = SessionWish(
        model=plan.model,
        policy=plan.policy,
        vad=plan.vad,
        instructions=LONG_ANSWERS if scenario.long_answers else SHORT_ANSWERS,
        api_key=plan.api_key,
    )
    async with open_line(plan, wish, clock) as line:
        clips = load_clips(voice, line.rate_hz, plan.seed)
        recording = await Conversation(line, clock, scenario, clips).hold()
        policy = line.policy_in_force
    report = report_conversation(scenario.name, voice, policy, recording)
    if plan.out is not None:
        await asyncio.to_thread(_keep, plan.out, report, recording)
    return report


def open_line(plan: TurnsPlan, wish: SessionWish, clock: Clock) -> Line:
    """The line of the plan's dialect; its context opens the session."""
    if plan.dialect == "openai":
        return OpenAILine(plan.url, wish)
    return DuplexLine(plan.url, wish, clock)


def _keep(folder: Path, report: ConversationReport, recording: Recording) -> None:
    stem = f"{report.scenario}-{report.voice}"
    write_stereo(
        folder / f"{stem}.wav", recording.user_pcm, recording.agent_pcm(), recording.rate_hz
    )
    picture = draw(f"{report.scenario}, {report.voice}", recording, report.timeline)
    (folder / f"{stem}.svg").write_text(picture, "utf-8")
