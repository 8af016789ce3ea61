"""From the options of `bench serve` to a report."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from omniduplex.benchmarks.machine import describe_machine
from omniduplex.benchmarks.questions import Question
from omniduplex.benchmarks.serve.caller import Call, Caller
from omniduplex.benchmarks.serve.dataset import Synthetic, load_dataset
from omniduplex.benchmarks.serve.duplex_session import DuplexSession
from omniduplex.benchmarks.serve.load import Level, hold_load
from omniduplex.benchmarks.serve.openai_session import OpenAISession
from omniduplex.benchmarks.serve.plots import pictures
from omniduplex.benchmarks.serve.report import (
    LevelReport,
    ServeReport,
    measurement_origin,
    report_level,
)
from omniduplex.benchmarks.serve.session import Backend, ServeSession
from omniduplex.benchmarks.serve.tables import show_serve
from omniduplex.clients import Clock, MonotonicClock

OPEN_LOOP_SESSIONS = 20


class ServeChoiceError(Exception):
    """The options make no load, or nothing could be measured under it."""


class ServeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    model: str
    backend: Backend
    concurrency: str
    """Numbers with commas between them; empty with a rate."""
    rate_per_s: float | None
    sessions: int | None
    """Sessions of each level; None: one for each caller at a time, or 20 in open loop."""
    questions: int
    """Questions of each session."""
    dataset: Path | None
    synthetic: Synthetic
    seed: int
    plots: Path | None
    api_key: str | None

    def levels(self) -> list[Level]:
        """The loads, one after the other.

        Raises:
            ServeChoiceError: the options make none.
        """
        if self.rate_per_s is not None:
            if self.concurrency:
                raise ServeChoiceError("arrivals have a rate or a concurrency, not both")
            if self.rate_per_s <= 0:
                raise ServeChoiceError("a rate is more than 0 sessions per second")
            count = self.sessions or OPEN_LOOP_SESSIONS
            return [Level(sessions=count, rate_per_s=self.rate_per_s)]
        try:
            sizes = [int(size) for size in (self.concurrency or "1").split(",")]
        except ValueError:
            sizes = []
        if not sizes or min(sizes) < 1:
            raise ServeChoiceError(f"{self.concurrency!r} is no list of numbers from 1 on")
        return [Level(sessions=self.sessions or size, concurrency=size) for size in sizes]


def measure_serve(
    choice: ServeChoice, url: str, console: Console, *, started_here: bool
) -> ServeReport:
    """Hold all loads, show the figures, draw the pictures and return the report.

    Raises:
        ServeChoiceError: the options make no load, or no answer came under any of them.
        QuestionError, OSError, wave.Error: the data set cannot be read.
    """
    machine, clock, levels = describe_machine(), MonotonicClock(), choice.levels()
    asked = load_dataset(choice.dataset, choice.synthetic, choice.seed)
    found = [
        _hold(level, index, choice, url, asked, clock, console)
        for index, level in enumerate(levels)
    ]
    report = ServeReport(
        machine=machine,
        load_after=os.getloadavg(),
        backend=choice.backend,
        model=choice.model,
        url=None if started_here else url,
        dataset=choice.dataset.name if choice.dataset else f"synthetic {choice.synthetic.value}",
        questions_per_session=choice.questions,
        seed=choice.seed,
        measurement_origin=measurement_origin(_session_class(choice.backend).turn_end),
        levels=tuple(found),
    )
    _check(report)
    show_serve(console, report)
    if choice.plots is not None:
        _draw(report, choice.plots)
    return report


def _hold(
    level: Level,
    index: int,
    choice: ServeChoice,
    url: str,
    asked: Sequence[Question],
    clock: Clock,
    console: Console,
) -> LevelReport:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
    with _no_collections(), progress, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        task = progress.add_task(level.name, total=level.sessions)
        calls, seconds = runner.run(
            hold_level(
                level,
                lambda: _open(choice, url, clock),
                asked,
                clock,
                questions=choice.questions,
                # Each level has its own draws, whatever the ones before it drew.
                rng=random.Random(f"{choice.seed} {index}"),
                on_call=lambda _: progress.advance(task),
            )
        )
    return report_level(level, calls, seconds)


@contextmanager
def _no_collections() -> Iterator[None]:
    """A collection stops all callers for tens of ms: gaps that no server made."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def hold_level(
    level: Level,
    open_session: Callable[[], ServeSession],
    asked: Sequence[Question],
    clock: Clock,
    *,
    questions: int,
    rng: random.Random,
    on_call: Callable[[Call], None],
) -> tuple[list[Call], float]:
    """All calls of a level, in the order in which they ended, and how many seconds they took."""
    calls: list[Call] = []
    started_at = clock.now()

    async def call(number: int) -> None:
        from_here = itertools.islice(itertools.cycle(asked), number, None)
        caller = Caller(open_session(), clock)
        calls.append(await caller.call(list(itertools.islice(from_here, questions))))
        on_call(calls[-1])

    await hold_load(level, call, clock, rng)
    return calls, clock.now() - started_at


def _session_class(backend: Backend) -> type[ServeSession]:
    return OpenAISession if backend == "openai-realtime" else DuplexSession


def _open(choice: ServeChoice, url: str, clock: Clock) -> ServeSession:
    if choice.backend == "openai-realtime":
        return OpenAISession(url, choice.model, choice.api_key)
    return DuplexSession(url, choice.model, clock, choice.api_key)


def _check(report: ServeReport) -> None:
    if any(one.answers_ended for one in report.levels):
        return
    reasons = {reason for one in report.levels for reason in one.errors}
    raise ServeChoiceError("; ".join(sorted(reasons)) or "no answer ended")


def _draw(report: ServeReport, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures(report).items():
        (folder / f"{name}.svg").write_text(picture, "utf-8")
