"""Both clients with the real server, the real engine and the echo model."""

from __future__ import annotations

import math
import struct
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.clients.scripted import JumpingClock
from tests.e2e.server import Server, serve

from omniduplex.clients.duplex import (
    DuplexClient,
    DuplexClientBase,
    DuplexProtocolError,
    EventCollector,
    InlineDuplexClient,
    acknowledge_collected_playback,
)
from omniduplex.clients.echo import create_duplex_session_config
from omniduplex.clients.stage_timing import reported_request_metrics
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.protocol.duplex import PlaybackAcknowledged, ResponseDone

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

MODEL = "omniduplex/echo"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(MODEL) as served:
        yield served


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    engine = DuplexOmni(MODEL)
    yield engine
    engine.shutdown()


@pytest.fixture(params=["websocket", "inline"])
async def talker(
    request: pytest.FixtureRequest, anyio_backend: str
) -> AsyncIterator[DuplexClientBase]:
    config = create_duplex_session_config()
    clock = JumpingClock()
    client: DuplexClientBase
    if request.param == "inline":
        omni = request.getfixturevalue("omni")
        client = InlineDuplexClient(omni, model=MODEL, config=config, clock=clock)
    else:
        url = request.getfixturevalue("server").url
        client = DuplexClient(
            url, model=MODEL, config=config, clock=clock, heartbeat_interval_s=None
        )
    async with client:
        yield client


def tone(ms: int) -> bytes:
    count = 16 * ms
    return struct.pack(f"<{count}h", *(int(8000 * math.sin(n / 4)) for n in range(count)))


async def test_a_tone_is_answered(talker: DuplexClientBase) -> None:
    assert talker.session_info.model == MODEL
    answers = talker.responses()
    await talker.stream_pcm(tone(1000), chunk_ms=80)
    await talker.commit(create_response=True)
    async for answer in answers:
        if answer.decision == "speak":
            break
    audio = b"".join([chunk async for chunk in answer.audio()])

    assert await answer.wait(timeout_s=60) == "completed"
    assert answer.transcript.startswith("You said")
    assert len(audio) // 48 == answer.played_ms > 0


async def test_what_was_heard_is_acknowledged(talker: DuplexClientBase) -> None:
    collector = EventCollector()
    finished = talker.wait_for(ResponseDone, timeout_s=60)
    events = talker.events()
    await talker.stream_pcm(tone(800), chunk_ms=80)
    await talker.commit(create_response=True)
    name = (await finished).response_id
    for event in events.drain():
        collector.add(event)
    acknowledged = talker.wait_for(PlaybackAcknowledged, timeout_s=60)
    await acknowledge_collected_playback(talker, collector)

    facts = (await acknowledged).event
    assert facts.item_id == f"item_{name}"
    assert facts.played_ms == int(collector.audio_ms(name)) > 0


async def test_an_answer_tells_how_soon_it_came(talker: DuplexClientBase) -> None:
    collector = EventCollector()
    finished = talker.wait_for(ResponseDone, timeout_s=60)
    events = talker.events()
    await talker.stream_pcm(tone(800), chunk_ms=80)
    await talker.commit(create_response=True)
    await finished
    for event in events.drain():
        collector.add(event)

    metrics = collector.timing_summary(after_s=0.0)["request_metrics"]
    assert metrics["measurement_origin"] == {"ttft": "response.created", "ttfp": "response.created"}
    reported = reported_request_metrics(collector.events)
    assert reported["source"] == "server_monotonic"
    assert (metrics["ttft_ms"], metrics["ttfp_ms"]) == (reported["ttft_ms"], reported["ttfp_ms"])
    assert 0 <= reported["ttfp_ms"] <= reported["audio_generation_ms"]
    assert reported["audio_duration_ms"] == pytest.approx(metrics["audio_duration_ms"], abs=0.1)


async def test_a_refusal_names_the_command(talker: DuplexClientBase) -> None:
    refused = talker.wait_for("session.closed", timeout_s=60)
    event_id = await talker.commit()

    with pytest.raises(DuplexProtocolError) as caught:
        await refused
    assert caught.value.code == "input_audio_buffer_empty"
    assert caught.value.event_id == event_id


async def test_a_session_of_wrong_types_is_refused_alike(
    server: Server, omni: DuplexOmni, anyio_backend: str
) -> None:
    config = create_duplex_session_config(temperature="hot")
    clients: tuple[DuplexClientBase, ...] = (
        DuplexClient(server.url, model=MODEL, config=config),
        InlineDuplexClient(omni, model=MODEL, config=config),
    )
    told = []
    for client in clients:
        with pytest.raises(DuplexProtocolError) as refused:
            await client.open()
        told.append((refused.value.code, refused.value.param, refused.value.message))

    across_the_network, in_this_process = told
    assert across_the_network == in_this_process
    assert across_the_network[:2] == ("bad_event", "temperature")
