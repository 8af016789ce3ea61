"""Sessions of the echo model on two workers: each stays where the model knows it."""

from __future__ import annotations

import asyncio
import math
import struct

import msgspec
import pytest

from omniduplex.clients import InlineDuplexClient
from omniduplex.clients.echo import create_duplex_session_config
from omniduplex.config.loader import load_pipeline
from omniduplex.engine.duplex.contracts import DuplexFence
from omniduplex.engine.duplex_orchestrator import route_of
from omniduplex.entrypoints.duplex_omni import DuplexOmni

MODEL = "omniduplex/echo"


def test_all_requests_of_a_session_have_one_route() -> None:
    first, later = DuplexFence("duplex-1", 0, 0), DuplexFence("duplex-1", 7, 3)
    other = DuplexFence("duplex-2", 0, 0)

    assert route_of(first.request_id("listen")) == route_of(later.request_id("answer.e.4"))
    assert route_of(first.request_id("listen")) != route_of(other.request_id("listen"))


def test_the_route_of_a_turn_request_is_its_own_id() -> None:
    assert route_of("turn.e.1") == "turn.e.1"


async def converse(omni: DuplexOmni) -> list[str]:
    """How two answers of one session ended."""
    tone = struct.pack("<12800h", *(int(8000 * math.sin(n / 4)) for n in range(12800)))
    ends: list[str] = []
    config = create_duplex_session_config()
    async with InlineDuplexClient(omni, model=MODEL, config=config) as client:
        answers = client.responses()
        for _ in range(2):
            await client.stream_pcm(tone, chunk_ms=80, realtime=False)
            await client.commit(create_response=True)
            async for answer in answers:
                if answer.decision == "speak":
                    ends.append(await answer.wait(timeout_s=60))
                    break
    return ends


@pytest.mark.anyio
@pytest.mark.e2e
async def test_sessions_of_two_replicas_are_all_answered() -> None:
    pipeline = load_pipeline(MODEL, None)
    stages = tuple(msgspec.structs.replace(stage, replicas=2) for stage in pipeline.stages)
    limits = msgspec.structs.replace(pipeline.duplex_session, max_sessions=4)
    pipeline = msgspec.structs.replace(pipeline, stages=stages, duplex_session=limits)
    omni = await asyncio.to_thread(DuplexOmni, MODEL, pipeline=pipeline)
    try:
        ends = await asyncio.gather(*(converse(omni) for _ in range(4)))
    finally:
        await asyncio.to_thread(omni.shutdown)

    assert ends == [["completed", "completed"]] * 4
