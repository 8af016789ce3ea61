"""More input than a model takes is refused, and harms neither session nor neighbour (B30, R15)."""

from __future__ import annotations

import asyncio
import base64
import itertools
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.entrypoints.talk import Talk
from tests.reliability.conftest import NoteFigure
from tests.reliability.processes import resident_bytes
from tests.reliability.served_echo import PATH, converse, leave, served_echo
from tests.reliability.slow_stages import GO, Silent, SlowEcho, SlowListening, path_of

from omniduplex.audio.pcm import byte_count
from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.duplex_session_handle import DuplexSessionHandle
from omniduplex.protocol.duplex import (
    AppendAudio,
    DuplexError,
    DuplexEvent,
    ErrorEvent,
    HeartbeatAck,
    InputCommitted,
    SessionUpdated,
)

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

MIB = 1024 * 1024
LIMIT_BYTES = MIB
MAX_GROWTH_BYTES = 128 * MIB
MAX_QUEUE = 64
RATE_HZ = 16_000
LISTENING = {"turn_detection": {"type": "server_vad", "create_response": False}}
BY_HAND = {"turn_detection": None}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def going() -> Iterator[None]:
    """Whatever becomes of a test, its stages can end."""
    GO.set()
    yield
    GO.set()


def slow(name: str, *stages: type) -> PipelineConfig:
    """A deployed model with these stages, which may stand still for as long as they like."""
    pipeline = load_pipeline(name, None)
    limits = msgspec.structs.replace(
        pipeline.duplex_session, max_pending_input_bytes_per_session=LIMIT_BYTES
    )
    return msgspec.structs.replace(
        pipeline,
        duplex_session=limits,
        stages=tuple(
            msgspec.structs.replace(
                stage,
                model_class=path_of(model),
                worker="thread",
                hang_timeout_s=0,
                max_queue=MAX_QUEUE,
            )
            for stage, model in zip(pipeline.stages, stages, strict=True)
        ),
    )


class Guest:
    """A session, and what came of what it was sent."""

    def __init__(self, session: DuplexSessionHandle) -> None:
        self._session = session
        self._events: AsyncIterator[DuplexEvent] = session.events()
        self._numbers = itertools.count()
        self.refused: list[str] = []

    @classmethod
    async def enter(cls, omni: DuplexOmni, config: Mapping[str, object]) -> Guest:
        guest = cls(await omni.open_session(config))
        await guest.until(SessionUpdated)
        return guest

    async def append(self, pcm: bytes) -> None:
        try:
            await self._session.submit(AppendAudio(audio=pcm, event_id=f"{next(self._numbers)}"))
        except DuplexError as error:
            self.refused.append(error.code)

    async def until(self, kind: type[DuplexEvent]) -> None:
        while True:
            event = await anext(self._events)
            if isinstance(event, ErrorEvent):
                self.refused.append(event.error.code)
            if isinstance(event, kind):
                return

    async def answered(self) -> list[str]:
        """The refusals since the last look, once all that was sent has been handled."""
        await self._session.heartbeat()
        await self.until(HeartbeatAck)
        refused, self.refused = self.refused, []
        return refused

    async def append_at_last(self, pcm: bytes) -> None:
        """Try until there is room."""
        while True:
            await self.append(pcm)
            if not await self.answered():
                return
            await asyncio.sleep(0.01)

    async def says_something(self, *, commits: bool) -> None:
        """A whole turn."""
        await self.append_at_last(loud(500) + bytes(byte_count(900, RATE_HZ)))
        if commits:
            await self._session.commit()
        await self.until(InputCommitted)


def loud(ms: int) -> bytes:
    phase = np.arange(byte_count(ms, RATE_HZ) // 2) * (2 * np.pi * 400 / RATE_HZ)
    pcm: bytes = (np.sin(phase) * 16_000).astype("<i2").tobytes()
    return pcm


@pytest.mark.parametrize("config", [LISTENING, BY_HAND], ids=["listening", "by hand"])
async def test_a_flood_of_samples_is_refused_while_a_stage_stands_still_and_its_neighbour_is_not(
    config: Mapping[str, object],
) -> None:
    """One queue holds the inputs of both: one of them fills its own share alone."""
    with DuplexOmni(pipeline=slow("omniduplex/echo", SlowEcho)) as omni:
        flooder, neighbour = await Guest.enter(omni, config), await Guest.enter(omni, config)
        GO.clear()
        for _ in range(4 * MAX_QUEUE):
            await flooder.append(b"\1\0")
        refused = await flooder.answered()
        await neighbour.append(b"\1\0")
        assert await neighbour.answered() == []
        GO.set()
        for guest in (flooder, neighbour):
            await guest.says_something(commits=config is BY_HAND)

    # A step may have taken one share before it stood still, and another waits.
    assert 3 * MAX_QUEUE <= len(refused) < 4 * MAX_QUEUE
    assert set(refused) == {"input_backpressure"}


async def test_audio_that_an_ear_is_yet_to_hear_is_bounded_and_harms_nobody() -> None:
    """Its worker takes all that comes; its session is told how much of it waits."""
    piece = bytes(LIMIT_BYTES // 5)
    with DuplexOmni(pipeline=slow("omniduplex/local", SlowListening, Silent)) as omni:
        flooder, neighbour = await Guest.enter(omni, LISTENING), await Guest.enter(omni, LISTENING)
        GO.clear()
        accepted = 0
        for _ in range(20):
            await flooder.append(piece)
            accepted += not await flooder.answered()
        await neighbour.append(bytes(1000))
        assert await neighbour.answered() == []
        GO.set()
        await neighbour.says_something(commits=False)
        await flooder.says_something(commits=False)

    # Its worker stands still in the step in which it took the first of it. Until its session is
    # told how much that was, there is room for as much again.
    assert 1 <= accepted <= 2 * LIMIT_BYTES // len(piece)


@pytest.mark.e2e
def test_b30_large_appends_in_a_row_cost_no_more_memory_than_the_limit_allows(
    tmp_path: Path, note_figure: NoteFigure
) -> None:
    """G.711 of 8 kHz, of which each byte becomes four of the model's."""
    limit, size, count = 4 * MIB, MIB, 200
    piece = base64.b64encode(b"\xff" * size).decode()
    session = {"input_audio_format": "g711_ulaw", **LISTENING}

    with (
        served_echo(tmp_path, max_sessions=2, max_pending_input_bytes_per_session=limit) as server,
        Talk(server.http, PATH, max_queue=None) as flooder,
        Talk(server.http, PATH) as neighbour,
    ):
        for talk in (flooder, neighbour):
            talk.until("session.updated")
            converse(talk)
        flooder.send("session.update", session=session)
        flooder.until("session.updated")
        flooder.send("input_audio_buffer.append", audio=piece)
        flooder.send("session.heartbeat")
        flooder.until("session.heartbeat_ack")
        before = resident_bytes(server.process.pid)

        def flood() -> None:
            for _ in range(count):
                flooder.send("input_audio_buffer.append", audio=piece)

        thread = threading.Thread(target=flood, name="flood")
        thread.start()
        grown = 0
        while thread.is_alive():
            converse(neighbour)
            grown = max(grown, resident_bytes(server.process.pid) - before)
        flooder.send("session.heartbeat")
        told = flooder.until("session.heartbeat_ack")
        grown = max(grown, resident_bytes(server.process.pid) - before)
        converse(flooder)
        leave(flooder)
        leave(neighbour)
    note_figure("grown_bytes", grown)

    refused = [event["error"]["code"] for event in told if event["type"] == "error"]
    note_figure("refused", len(refused))
    assert set(refused) <= {"input_backpressure"}
    # What is being decoded, and what allocators keep, comes on top.
    assert grown <= MAX_GROWTH_BYTES
