"""Cancel: how long an answer that is no longer wanted goes on, and whether it ends for good."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from random import Random
from typing import Literal

import msgspec

from omniduplex.benchmarks.frames import APPEND_BYTES, FRAME_MS, FRAME_S, Frames
from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.overhead import LONG_TEXT, OPEN_MICROPHONE
from omniduplex.benchmarks.summary import Summary, summarise
from omniduplex.clients import (
    Clock,
    DuplexClient,
    DuplexConnectionError,
    DuplexProtocolError,
    ServerEvent,
)
from omniduplex.protocol.duplex import (
    AudioDelta,
    BargeIn,
    ContentPart,
    ErrorEvent,
    ItemInput,
    ResponseDone,
    TextDelta,
    TranscriptDelta,
)

# An answer is cancelled somewhere in its first second, after its first audio.
LATEST_CANCEL_S = 1.0
# An answer that had ended by itself meanwhile, which one of ten seconds does on a stuck machine.
NOT_ACTIVE = "response_not_active"
ORIGINS = {
    "terminal_ms": "the command handed to the client's socket -> response.done (cancelled) read,"
    " on the client's clock",
    "last_delta_ms": "the same -> the response's last delta read; 0 when none came any more",
    "deltas_after_terminal": "deltas of audio, transcript or text read after their response.done,"
    " to the end of the run",
}


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """One cancel, in seconds from the moment it was handed to the socket."""

    terminal_s: float
    last_delta_s: float
    deltas: int
    """Read between the cancel and the end of the response."""


class CancelLog:
    """What one caller saw of its answers and their ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent_at: float | None = None
        self._last_delta_s = 0.0
        self._deltas = 0
        self._ended: set[str] = set()
        self.cancelled: list[Cancelled] = []
        self.missed = 0
        """Cancels of answers that had ended by themselves."""
        self.deltas_after_terminal = 0

    def sends(self) -> None:
        """The cancel of the answer being heard is handed over now."""
        self._sent_at, self._last_delta_s, self._deltas = self._clock.now(), 0.0, 0

    def delta(self, response_id: str) -> bool:
        """A delta was read; whether its response goes on, as it should."""
        if response_id in self._ended:
            self.deltas_after_terminal += 1
            return False
        if self._sent_at is not None:
            self._deltas += 1
            self._last_delta_s = self._clock.now() - self._sent_at
        return True

    def done(self, response_id: str, status: str) -> None:
        """A response's end was read."""
        self._ended.add(response_id)
        sent_at, self._sent_at = self._sent_at, None
        if sent_at is None or status != "cancelled":
            self.missed += 1
            return
        self.cancelled.append(
            Cancelled(
                terminal_s=self._clock.now() - sent_at,
                last_delta_s=self._last_delta_s,
                deltas=self._deltas,
            )
        )


class CancelReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the benchmark found."""

    benchmark: Literal["cancel"] = "cancel"
    machine: Machine
    model: str
    sessions: int
    frame_ms: int = FRAME_MS
    cancels: int
    missed: int
    deltas_after_cancel: int
    deltas_after_terminal: int
    terminal_ms: Summary | None
    last_delta_ms: Summary | None
    origins: dict[str, str]


class CancelCaller:
    """A session with paced echo that interrupts its answers: by command, and by barging in."""

    def __init__(self, url: str, model: str, clock: Clock, random: Random) -> None:
        self.log = CancelLog(clock)
        self._clock = clock
        self._random = random
        self._frames = Frames(clock)
        self._speaking = asyncio.Event()
        self._over = asyncio.Event()
        self._client = DuplexClient(
            url,
            model=model,
            clock=clock,
            config=OPEN_MICROPHONE,
        )

    async def run(self, cancels: int, offset_s: float, all_speak: asyncio.Barrier) -> None:
        """Cancel so many answers, with frames every 80 ms, `offset_s` after the beat.

        The first one waits until all callers hear an answer, the next ones do not.
        """
        client, silence = self._client, bytes(APPEND_BYTES)
        async with client, asyncio.TaskGroup() as tasks:
            background = (
                tasks.create_task(self._receive(), name="receive"),
                tasks.create_task(
                    self._frames.send_paced(lambda: client.append_audio(silence), offset_s),
                    name="frames",
                ),
            )
            text = ContentPart(type="input_text", text=LONG_TEXT)
            await client.create_item(ItemInput(content=(text,)))
            await self._next_answer()
            await all_speak.wait()
            for number in range(cancels):
                await self._interrupt(barges_in=number % 2 == 1)
            for task in background:
                task.cancel()

    async def _next_answer(self) -> None:
        self._speaking.clear()
        self._over.clear()
        await self._client.create_response()
        await self._speaking.wait()

    async def _interrupt(self, *, barges_in: bool) -> None:
        await self._clock.sleep(self._random.uniform(0.0, LATEST_CANCEL_S))
        self.log.sends()
        if barges_in:
            await self._client.send(BargeIn())
        else:
            await self._client.cancel_response()
        await self._over.wait()
        # Also after the last cancel: what was still on its way is read before new audio.
        await self._next_answer()

    async def _receive(self) -> None:
        async for event in self._client.events():
            self._note(event)
        raise DuplexConnectionError("a session ended in the middle of its cancels")

    def _note(self, event: ServerEvent) -> None:
        match event:
            case AudioDelta() | TranscriptDelta() | TextDelta():
                if self.log.delta(event.response_id):
                    self._speaking.set()
            case ResponseDone():
                self.log.done(event.response_id, event.response.status)
                self._over.set()
            case ErrorEvent() if event.error.code != NOT_ACTIVE:
                raise DuplexProtocolError.from_event(event)


async def cancel_all(callers: Sequence[CancelCaller], cancels: int) -> None:
    """Have every caller cancel so many answers, all at the same time."""
    all_speak = asyncio.Barrier(len(callers))
    async with asyncio.TaskGroup() as tasks:
        for index, caller in enumerate(callers):
            # Spread over the frame, as callers who know nothing of each other are.
            offset_s = index * FRAME_S / len(callers)
            tasks.create_task(caller.run(cancels, offset_s, all_speak), name=f"caller-{index}")


def report_cancel(logs: Sequence[CancelLog], *, machine: Machine, model: str) -> CancelReport:
    """Put all callers together."""
    every = list(itertools.chain.from_iterable(log.cancelled for log in logs))
    return CancelReport(
        machine=machine,
        model=model,
        sessions=len(logs),
        cancels=len(every),
        missed=sum(log.missed for log in logs),
        deltas_after_cancel=sum(one.deltas for one in every),
        deltas_after_terminal=sum(log.deltas_after_terminal for log in logs),
        terminal_ms=summarise([one.terminal_s * 1000 for one in every]),
        last_delta_ms=summarise([one.last_delta_s * 1000 for one in every]),
        origins=ORIGINS,
    )
