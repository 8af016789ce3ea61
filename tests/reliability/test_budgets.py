"""What a client can make the server hold is bounded, and it is told (B30, R15, R16)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.entrypoints.talk import Talk
from tests.faults.counts import IS_SOAK
from tests.faults.test_cuts import tone
from tests.reliability.conftest import NoteFigure
from tests.reliability.processes import cpu_s, resident_bytes
from tests.reliability.served_echo import IS_CI, PATH, converse, leave, served_echo
from websockets.asyncio.client import connect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

MIB = 1024 * 1024
LIMIT_BYTES = 16 * MIB
PIECE_S = 64 * 1024 / 2 / 16_000
APPENDED_BYTES = (60 if IS_CI else 24) * MIB
SLACK_BYTES = 8 * MIB
CAPACITY = 8 if IS_SOAK else 4
BURST = 10 * CAPACITY


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_b30_a_flood_without_a_commit_is_refused_and_a_clear_makes_room(
    tmp_path: Path, note_figure: NoteFigure
) -> None:
    piece = tone(PIECE_S, 300)
    pieces = APPENDED_BYTES // (64 * 1024)
    with served_echo(tmp_path, max_sessions=2) as server, Talk(server.http, PATH) as talk:
        talk.until("session.updated")
        before = resident_bytes(server.process.pid)
        refused = 0
        for _ in range(pieces):
            talk.send("input_audio_buffer.append", audio=piece)
            talk.send("session.heartbeat")
            for event in talk.until("session.heartbeat_ack")[:-1]:
                refused += event.get("error", {}).get("code") == "input_backpressure"
        grown = resident_bytes(server.process.pid) - before
        talk.send("input_audio_buffer.clear")
        talk.until("input_audio_buffer.cleared")
        talk.send("input_audio_buffer.append", audio=tone(0.3, 300))
        talk.send("input_audio_buffer.commit")
        heard = talk.until("conversation.item.input_audio_transcription.completed")[-1]
        converse(talk)
        leave(talk)
    note_figure("grown_bytes", grown)

    assert refused == pieces - LIMIT_BYTES // (64 * 1024)
    assert heard["transcript"] == "tone 300 Hz 0.3 s"
    assert grown < LIMIT_BYTES + SLACK_BYTES


class Opened(NamedTuple):
    """What came of an open, and how long that took from the first byte of its connection."""

    event: dict[str, Any]
    took_ms: float


async def first_event(url: str, gate: asyncio.Event) -> Opened:
    began = perf_counter()
    async with connect(url, compression=None, open_timeout=None) as socket:
        event: dict[str, Any] = json.loads(await socket.recv())
        took_ms = (perf_counter() - began) * 1000
        if event["type"] == "session.created":
            await gate.wait()
        return Opened(event, took_ms)


@pytest.mark.anyio
async def test_a_burst_of_opens_admits_as_many_as_there_is_room_for(
    tmp_path: Path, note_figure: NoteFigure
) -> None:
    with served_echo(tmp_path, max_sessions=CAPACITY) as server:
        pid = server.process.pid
        gate = asyncio.Event()
        url = f"{server.url}{PATH}"
        server_cpu_s, client_cpu_s = cpu_s(pid), process_time()
        waiting = {asyncio.create_task(first_event(url, gate)) for _ in range(BURST)}
        refused: set[asyncio.Task[Opened]] = set()
        while len(refused) < BURST - CAPACITY:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            refused |= done
        server_cpu_s, client_cpu_s = cpu_s(pid) - server_cpu_s, process_time() - client_cpu_s
        one_by_one = [await first_event(url, gate) for _ in range(BURST // 2)]
        gate.set()
        admitted = await asyncio.gather(*waiting)
    took_ms = np.percentile([one.result().took_ms for one in refused], (50, 95, 100))
    note_figure("refused_after_ms_p50_p95_max", took_ms.round(1).tolist())
    alone_ms = np.percentile([one.took_ms for one in one_by_one], (50, 95))
    note_figure("refused_one_by_one_after_ms_p50_p95", alone_ms.round(1).tolist())
    note_figure("server_cpu_ms_per_open", round(server_cpu_s * 1000 / BURST, 2))
    note_figure("client_cpu_ms_per_open", round(client_cpu_s * 1000 / BURST, 2))

    assert [one.event["type"] for one in admitted] == ["session.created"] * CAPACITY
    for event in (one.event for one in (*one_by_one, *(task.result() for task in refused))):
        assert (event["type"], event["error"]["code"]) == ("error", "resource_exhausted")
        assert event["error"]["retryable"] is True
