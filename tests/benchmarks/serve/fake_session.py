"""A session that answers by a script, on a stepping clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

from omniduplex.benchmarks.serve.session import Arrival, ServeSession
from omniduplex.clients import Clock

Script = Sequence[tuple[float, Arrival]]
"""Seconds after the one before, and what comes then."""


class FakeSession(ServeSession):
    """Plays the script at each turn's end; None ends the session instead."""

    turn_end = "the turn's end"

    def __init__(self, clock: Clock, script: Script | None, refusal: Exception | None = None):
        self._clock = clock
        self._script = script
        self._refusal = refusal
        self._turns: asyncio.Queue[Script | None] = asyncio.Queue()
        self.sent: list[bytes] = []
        self.sent_at_turn_end: list[int] = []
        self.ended_at: list[float] = []
        self.heard: list[tuple[str | None, float]] = []
        self.closed = False

    async def __aenter__(self) -> Self:
        if self._refusal is not None:
            raise self._refusal
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.closed = True

    async def send(self, pcm: bytes) -> None:
        self.sent.append(pcm)

    async def end_turn(self) -> None:
        self.ended_at.append(self._clock.now())
        self.sent_at_turn_end.append(sum(map(len, self.sent)))
        self._turns.put_nowait(self._script)

    async def events(self) -> AsyncIterator[Arrival]:
        while (script := await self._turns.get()) is not None:
            for after_s, arrival in script:
                await self._clock.sleep(after_s)
                yield arrival

    async def report_heard(self, response_id: str | None, ms: float) -> None:
        self.heard.append((response_id, ms))
