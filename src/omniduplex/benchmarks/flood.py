"""Flood: one client sends appends of one byte, and its neighbour measures what that costs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from rich.console import Console
from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Frame, Opcode

from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.process_sizes import sizes_of
from omniduplex.benchmarks.server_process import ServerProcess
from omniduplex.clients import Clock
from omniduplex.protocol.duplex import AppendAudio, Heartbeat, encode_command

BATCH_S = 0.01
BEAT_S = 0.005
# What our own socket holds beyond this the server has not taken.
MAX_UNSENT_BYTES = 256 * 1024
ORIGINS = {
    "neighbour": "`session.heartbeat` handed to the socket -> its ack read, every 5 ms; it goes"
    " through the session's engine",
    "appends_per_s": "frames that the server's socket took, whatever became of them",
}


class Beats(msgspec.Struct, frozen=True, kw_only=True):
    """Round trips of a neighbour, in ms."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class FloodReport(msgspec.Struct, frozen=True, kw_only=True):
    """A neighbour without a flood and beside it."""

    benchmark: Literal["flood"] = "flood"
    machine: Machine | None = None
    model: str
    seconds: float
    wanted_per_s: int
    appends_per_s: float
    refused: dict[str, int]
    """Appends that were refused, by error code."""
    quiet: Beats
    beside: Beats
    server_cpu_share: float
    """Of one core, beside the flood."""
    grown_bytes: int
    origins: dict[str, str]

    def on(self, machine: Machine) -> FloodReport:
        """The same, with where it was measured."""
        return msgspec.structs.replace(self, machine=machine)


async def measure_flood(
    server: ServerProcess, model: str, clock: Clock, *, rate: int, seconds: float
) -> FloodReport:
    """Measure a neighbour for so long without a flood, and for as long beside one."""
    url = f"{server.url}/v1/duplex?model={model}"
    async with _open(url) as neighbour, _open(url) as flooder:
        quiet = await _beat(neighbour, clock, seconds)
        refused: Counter[str] = Counter()
        size, cpu = sizes_of(server.pid).resident_bytes, server.cpu_seconds()
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(_read(flooder, refused), name="read")
            sending = tasks.create_task(_send(flooder, clock, rate, seconds), name="flood")
            beside = await _beat(neighbour, clock, seconds)
            used_s = server.cpu_seconds() - cpu
            sent = await sending
            reading.cancel()
        return FloodReport(
            model=model,
            seconds=seconds,
            wanted_per_s=rate,
            appends_per_s=sent / seconds,
            refused=dict(refused),
            quiet=quiet,
            beside=beside,
            server_cpu_share=used_s / seconds,
            grown_bytes=sizes_of(server.pid).resident_bytes - size,
            origins=ORIGINS,
        )


def _open(url: str) -> connect:
    # A machine that is busy with a flood is not to be judged by pings of our own.
    return connect(url, compression=None, max_size=None, open_timeout=None, ping_interval=None)


async def _beat(neighbour: ClientConnection, clock: Clock, seconds: float) -> Beats:
    beat = encode_command(Heartbeat())
    took: list[float] = []
    ends_at = clock.now() + seconds
    while (began := clock.now()) < ends_at:
        await neighbour.send(beat)
        while b"session.heartbeat_ack" not in await neighbour.recv(decode=False):
            pass
        took.append((clock.now() - began) * 1000)
        await clock.sleep_until(began + BEAT_S)
    return summarise_beats(took)


def summarise_beats(took_ms: Sequence[float]) -> Beats:
    """Summarise round trips."""
    p50, p99 = np.percentile(took_ms, (50, 99))
    return Beats(count=len(took_ms), p50_ms=float(p50), p99_ms=float(p99), max_ms=max(took_ms))


async def _send(flooder: ClientConnection, clock: Clock, rate: int, seconds: float) -> int:
    """Write frames that were made beforehand, so that the flood costs this process little."""
    append = encode_command(AppendAudio(audio=b"\1")).encode()
    frame = Frame(Opcode.TEXT, append).serialize(mask=True)
    batch = round(rate * BATCH_S)
    frames, sent = frame * batch, 0
    started_at = clock.now()
    for number in range(round(seconds / BATCH_S)):
        await clock.sleep_until(started_at + number * BATCH_S)
        if flooder.transport.get_write_buffer_size() < MAX_UNSENT_BYTES:
            flooder.transport.write(frames)
            sent += batch
    return sent


async def _read(flooder: ClientConnection, refused: Counter[str]) -> None:
    async for message in flooder:
        event = msgspec.json.decode(message)
        if event["type"] == "error":
            refused[event["error"]["code"]] += 1


def show_flood(console: Console, report: FloodReport) -> None:
    """The figures."""
    for name, beats in (("alone", report.quiet), ("beside the flood", report.beside)):
        line = f"{name:<17} p50 {beats.p50_ms:.2f} ms, p99 {beats.p99_ms:.2f} ms"
        console.print(line, markup=False, highlight=False)
    line = (
        f"{report.appends_per_s:.0f} appends/s, refused: {report.refused or 'none'};"
        f" the server used {report.server_cpu_share:.0%} of a core"
    )
    console.print(line, markup=False, highlight=False, soft_wrap=True)
