"""A line without a server: it says what the test says, at its own moments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from omniduplex.benchmarks.turns.line import Line, LineEvent
from omniduplex.clients import Clock

RATE_HZ = 1000  # a sample is a ms


class BeatClock(Clock):
    """Starts at 0, and only the microphone's waiting moves it: all else sleeps along."""

    def __init__(self) -> None:
        self._now = 0.0
        self._passed = asyncio.Condition()

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait for others to move the clock so far."""
        end = self._now + seconds
        async with self._passed:
            await self._passed.wait_for(lambda: self._now >= end - 1e-9)

    async def sleep_until(self, moment: float) -> None:
        """Let everybody act on what has come, move the clock, and let those who waited act."""
        await self._let_others_act()
        async with self._passed:
            self._now = max(self._now, moment)
            self._passed.notify_all()
        await self._let_others_act()

    async def _let_others_act(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


class FakeLine(Line):
    """Delivers events when so many ms have been sent to it."""

    rate_hz = RATE_HZ

    def __init__(self, *events: tuple[int, LineEvent]) -> None:
        self._due = sorted(events, key=lambda pair: pair[0])
        self._queue: asyncio.Queue[LineEvent] = asyncio.Queue()
        self.received = bytearray()
        self.heard: list[tuple[int, str, float, bool]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    async def send(self, pcm: bytes) -> None:
        self.received += pcm
        while self._due and self._due[0][0] <= self._ms:
            self._queue.put_nowait(self._due.pop(0)[1])

    async def events(self) -> AsyncIterator[LineEvent]:
        while True:
            yield await self._queue.get()

    async def report_heard(self, response_id: str, ms: float, *, cut_off: bool) -> None:
        self.heard.append((self._ms, response_id, ms, cut_off))

    @property
    def _ms(self) -> int:
        return len(self.received) // 2


def audio(response_id: str, ms: int, value: int = 8000) -> LineEvent:
    pcm = value.to_bytes(2, "little", signed=True) * ms
    return LineEvent(type="response.output_audio.delta", response_id=response_id, audio=pcm)


def done(response_id: str, status: str = "completed") -> LineEvent:
    return LineEvent(
        type="response.done",
        response_id=response_id,
        ended=True,
        silences=status == "cancelled",
        note=status,
    )
