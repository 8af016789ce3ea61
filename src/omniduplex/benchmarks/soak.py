"""Soak: many sessions that come, talk and go for a long time, and what drifts meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, TypeVar

import msgspec
import numpy as np
from rich.console import Console

from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.process_sizes import Sizes, sizes_of
from omniduplex.benchmarks.serve.duplex_session import DuplexSession
from omniduplex.benchmarks.serve.session import SESSION_ERRORS, Arrival, ServeSession
from omniduplex.benchmarks.server_process import ServerProcess
from omniduplex.clients import Clock
from omniduplex.clients.microphone import RATE_HZ

WINDOWS = 10
# The first window warms up; what comes after it is compared with the end.
COMPARED = 3
TURNS_PER_SESSION = 20
SAID_S = 0.32
TURN_TIMEOUT_S = 60.0
PAUSE_S = (0.5, 2.5)
"""A caller says nothing for so long before each turn."""
TONE_HZ = 300
TONE_LEVEL = 8000
MIB = 1024 * 1024
ORIGINS = {
    "first_audio": "commit handed to the client's socket -> first audio read, on its clock",
    "p99_drift": f"of all first audio in the last {COMPARED} windows, over that of the first"
    f" {COMPARED} behind the warm-up, less 1",
    "resident_drift": "of the server process, medians over the same windows, less 1",
}


Taken = TypeVar("Taken")


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the time; sizes are those at its end."""

    ends_at_s: float
    turns: int
    first_audio_p50_ms: float | None
    first_audio_p99_ms: float | None
    server: Sizes
    client: Sizes


class SoakReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was held, and what drifted."""

    benchmark: Literal["soak"] = "soak"
    machine: Machine
    model: str
    sessions: int
    seconds: float
    sessions_held: int
    turns: int
    failures: dict[str, int]
    """Turns and sessions that did not end as they should, by what was said."""
    p99_drift: float | None
    """None when there was no answer in one of the two."""
    resident_drift: float
    windows: list[Window]
    origins: dict[str, str]


class Soak:
    """Holds sessions with one server; everything that happens is counted here."""

    def __init__(self, server: ServerProcess, model: str, clock: Clock, *, seed: int) -> None:
        self.windows: list[Window] = []
        self.latencies_ms: list[list[float]] = [[]]
        """First audio of each turn, window by window."""
        self.failures: dict[str, int] = {}
        self.sessions_held = 0
        self.seconds = 0.0
        self._server = server
        self._model = model
        self._clock = clock
        self._rng = random.Random(seed)
        self._said = _tone()

    async def hold(
        self, sessions: int, seconds: float, on_window: Callable[[Window], None]
    ) -> None:
        """Keep so many sessions talking for so long."""
        started_at = self._clock.now()
        async with asyncio.TaskGroup() as tasks:
            callers = [
                tasks.create_task(self._call_for_ever(), name=f"caller {number}")
                for number in range(sessions)
            ]
            for number in range(1, WINDOWS + 1):
                await self._clock.sleep_until(started_at + number * seconds / WINDOWS)
                self._end_window(self._clock.now() - started_at, on_window)
            for caller in callers:
                caller.cancel()
        self.seconds = self._clock.now() - started_at

    def _end_window(self, at_s: float, on_window: Callable[[Window], None]) -> None:
        taken = self.latencies_ms[-1]
        p50, p99 = np.percentile(taken, (50, 99)) if taken else (None, None)
        window = Window(
            ends_at_s=at_s,
            turns=len(taken),
            first_audio_p50_ms=p50 if p50 is None else float(p50),
            first_audio_p99_ms=p99 if p99 is None else float(p99),
            server=sizes_of(self._server.pid),
            client=sizes_of(os.getpid()),
        )
        self.windows.append(window)
        self.latencies_ms.append([])
        on_window(window)

    async def _call_for_ever(self) -> None:
        while True:
            await self._pause()
            try:
                await self._call()
            except SESSION_ERRORS as error:
                self._failed(str(error))

    async def _call(self) -> None:
        async with DuplexSession(self._server.url, self._model, self._clock) as session:
            self.sessions_held += 1
            arrivals = session.events()
            for _ in range(TURNS_PER_SESSION):
                await self._pause()
                try:
                    async with asyncio.timeout(TURN_TIMEOUT_S):
                        await self._turn(session, arrivals)
                except TimeoutError:
                    self._failed("a turn had no end")
                    return

    async def _turn(self, session: ServeSession, arrivals: AsyncIterator[Arrival]) -> None:
        await session.send(self._said)
        asked_at = self._clock.now()
        await session.end_turn()
        first_ms: float | None = None
        async for arrival in arrivals:
            if arrival.audio_ms and first_ms is None:
                first_ms = (self._clock.now() - asked_at) * 1000
            if arrival.error:
                self._failed(arrival.error)
                return
            if arrival.status is not None:
                if arrival.status == "completed" and first_ms is not None:
                    self.latencies_ms[-1].append(first_ms)
                else:
                    self._failed(f"a turn ended {arrival.status}")
                return
        self._failed("a session ended within a turn")

    async def _pause(self) -> None:
        await self._clock.sleep(self._rng.uniform(*PAUSE_S))

    def _failed(self, how: str) -> None:
        self.failures[how] = self.failures.get(how, 0) + 1


def _tone() -> bytes:
    phase = np.arange(int(SAID_S * RATE_HZ)) * 2 * np.pi * TONE_HZ / RATE_HZ
    return (TONE_LEVEL * np.sin(phase)).astype("<i2").tobytes()


def report_soak(held: Soak, *, machine: Machine, model: str, sessions: int) -> SoakReport:
    """Compare the end with the beginning."""
    begin, end = _compared([window.server.resident_bytes for window in held.windows])
    return SoakReport(
        machine=machine,
        model=model,
        sessions=sessions,
        seconds=held.seconds,
        sessions_held=held.sessions_held,
        turns=sum(window.turns for window in held.windows),
        failures=held.failures,
        p99_drift=_p99_drift(held.latencies_ms[:WINDOWS]),
        resident_drift=float(np.median(end) / np.median(begin)) - 1,
        windows=held.windows,
        origins=ORIGINS,
    )


def _p99_drift(windows: Sequence[Sequence[float]]) -> float | None:
    begin, end = ([one for window in part for one in window] for part in _compared(windows))
    if not begin or not end:
        return None
    return float(np.percentile(end, 99) / np.percentile(begin, 99)) - 1


def _compared(windows: Sequence[Taken]) -> tuple[Sequence[Taken], Sequence[Taken]]:
    return windows[1 : 1 + COMPARED], windows[-COMPARED:]


def show_window(console: Console, window: Window) -> None:
    """One line for a window that is over."""
    p99 = window.first_audio_p99_ms
    told = "no answer" if p99 is None else f"p99 {p99:.1f} ms"
    resident = window.server.resident_bytes / MIB
    line = (
        f"{window.ends_at_s:7.0f} s  {window.turns:6} turns  {told:>12}  {resident:.1f} MiB,"
        f" {window.server.open_files} files, {window.server.threads} threads"
    )
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_soak(console: Console, report: SoakReport) -> None:
    """The figures over all windows."""
    drift = "unknown" if report.p99_drift is None else f"{report.p99_drift:+.1%}"
    line = (
        f"{report.sessions_held} sessions, {report.turns} turns,"
        f" {sum(report.failures.values())} failures;"
        f" p99 {drift}, memory {report.resident_drift:+.1%}"
    )
    console.print(line, markup=False, highlight=False, soft_wrap=True)
