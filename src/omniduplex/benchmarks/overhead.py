"""Overhead: what the server spends on a frame in and a frame out, when the model costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from omniduplex.benchmarks.frames import APPEND_BYTES, FRAME_MS, FRAME_S, Frames
from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.summary import Summary, summarise
from omniduplex.clients import Clock, DuplexClient, DuplexProtocolError, SessionConfig
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ContentPart,
    ErrorEvent,
    ItemInput,
    ResponseDone,
    TurnDetectionPatch,
)

# Echo answers a text with 400 ms a word, ten seconds at most.
LONG_TEXT = " ".join(["again"] * 25)
WARM_UP_S = 2.0
# The ear ends turns, so that a frame over an answer is heard and not told of; no turn is answered.
OPEN_MICROPHONE = SessionConfig(
    input_audio=AudioFormat(sample_rate_hz=16_000),
    auto_response=False,
    overlap_policy="listen_only",
    turn_detection=TurnDetectionPatch(
        type="server_vad", create_response=False, interrupt_response=False
    ),
)
ORIGINS = {
    "cpu_us_per_pair": "user + system time of the server process and its children, less that of"
    " the same server idle for as long; per frame answered",
    "added_latency_ms": "append handed to the client's socket -> the delta it caused read,"
    " on the client's clock",
}


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What one server spent."""

    cpu_us_per_pair: float
    cpu_s: float
    idle_cpu_s: float
    seconds: float
    appends: int
    pairs: int
    late: int
    """Pairs whose delta came after the next append; they have no latency."""
    added_latency_ms: Summary | None


class OverheadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the benchmark found; `ratio` is CPU per pair over that of the baseline."""

    benchmark: Literal["overhead"] = "overhead"
    machine: Machine
    model: str
    sessions: int
    frame_ms: int = FRAME_MS
    ratio: float
    stack: Side
    baseline: Side
    baseline_is: str = (
        "a websockets asyncio server on uvloop: JSON (msgspec) and base64 (pybase64) decoded and"
        " encoded once a frame, nothing else"
    )
    origins: dict[str, str]


class Caller(Protocol):
    """One of the concurrent conversations."""

    async def run(self, offset_s: float) -> None:
        """Send and receive until cancelled, `offset_s` after the beat."""


class EchoCaller:
    """A session with paced echo that is being answered all the time."""

    def __init__(self, url: str, model: str, clock: Clock, frames: Frames) -> None:
        self._frames = frames
        self._client = DuplexClient(
            url,
            model=model,
            clock=clock,
            config=OPEN_MICROPHONE,
        )

    async def run(self, offset_s: float) -> None:
        """Send and receive until cancelled."""
        client, silence = self._client, bytes(APPEND_BYTES)
        async with client, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._receive(), name="receive")
            text = ContentPart(type="input_text", text=LONG_TEXT)
            await client.create_item(ItemInput(content=(text,)))
            await client.create_response()
            await self._frames.send_paced(lambda: client.append_audio(silence), offset_s)

    async def _receive(self) -> None:
        async for event in self._client.events():
            match event:
                case AudioDelta():
                    self._frames.received()
                case ResponseDone():
                    await self._client.create_response()
                case ErrorEvent():
                    raise DuplexProtocolError.from_event(event)


async def measure(
    callers: Sequence[Caller],
    frames: Sequence[Frames],
    cpu_seconds: Callable[[], float],
    clock: Clock,
    seconds: float,
) -> Side:
    """Measure an idle server, then the same with all callers, for so many seconds each."""
    before = cpu_seconds()
    await clock.sleep(seconds)
    idle_s = cpu_seconds() - before
    async with asyncio.TaskGroup() as tasks:
        running = [
            # Spread over the frame, as callers who know nothing of each other are.
            tasks.create_task(caller.run(index * FRAME_S / len(callers)), name=f"caller-{index}")
            for index, caller in enumerate(callers)
        ]
        await clock.sleep(WARM_UP_S)
        started_at, before = clock.now(), cpu_seconds()
        for counted in frames:
            counted.counting = True
        await clock.sleep(seconds)
        used_s, took_s = cpu_seconds() - before, clock.now() - started_at
        for counted in frames:
            counted.counting = False
        for task in running:
            task.cancel()
    return side(frames, used_s=used_s, idle_s=idle_s, took_s=took_s)


def side(frames: Sequence[Frames], *, used_s: float, idle_s: float, took_s: float) -> Side:
    """Put the callers' frames and the server's CPU time together.

    Raises:
        ValueError: not one frame was answered.
    """
    pairs = sum(counted.pairs for counted in frames)
    if not pairs:
        raise ValueError("the server answered no frame")
    latencies = [latency * 1000 for counted in frames for latency in counted.latencies_s]
    return Side(
        cpu_us_per_pair=max(0.0, used_s - idle_s) / pairs * 1e6,
        cpu_s=used_s,
        idle_cpu_s=idle_s,
        seconds=took_s,
        appends=sum(counted.appends for counted in frames),
        pairs=pairs,
        late=sum(counted.late for counted in frames),
        added_latency_ms=summarise(latencies),
    )


def report_overhead(
    stack: Side, baseline: Side, *, machine: Machine, model: str, sessions: int
) -> OverheadReport:
    """Put both sides together."""
    least = baseline.cpu_us_per_pair
    return OverheadReport(
        machine=machine,
        model=model,
        sessions=sessions,
        ratio=stack.cpu_us_per_pair / least if least else float("inf"),
        stack=stack,
        baseline=baseline,
        origins=ORIGINS,
    )
