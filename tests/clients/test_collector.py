from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.clients.scripted import Peer, audio, created, done, text, wav, words

from omniduplex.clients.duplex import (
    DuplexClientBase,
    EventCollector,
    acknowledge_collected_playback,
)
from omniduplex.protocol.duplex import AckPlayback, DuplexError, error_event


@pytest.fixture
def collector() -> EventCollector:
    moments: Iterator[int] = iter(range(100))
    return EventCollector(now=lambda: float(next(moments)))


@pytest.fixture
def full(collector: EventCollector) -> EventCollector:
    """Two answers, one event in each second."""
    for event in (
        created("one"),
        audio("one", bytes(4800)),
        words("one", "It is "),
        audio("one", bytes(2400)),
        words("one", "sunny."),
        done("one"),
        created("two"),
        text("two", "Rain."),
        error_event(DuplexError("bad_audio", "odd bytes")),
    ):
        collector.add(event)
    return collector


def test_events_are_counted_by_wire_type(full: EventCollector) -> None:
    assert full.count("response.output_audio.delta") == 2
    assert full.count("session.closed") == 0
    assert [error.error.code for error in full.errors()] == ["bad_audio"]


def test_audio_and_words_are_kept_by_response(full: EventCollector) -> None:
    assert full.response_ids == ["one", "two"]
    assert full.audio_bytes("one") == full.audio_bytes() == bytes(7200)
    assert full.audio_bytes("two") == b""
    assert full.audio_ms("one") == 150
    assert full.response_text("one") == "It is sunny."
    assert full.response_text("two") == "Rain."


def test_of_wavs_the_samples_are_kept_and_measured(collector: EventCollector) -> None:
    for pcm in (bytes(4800), b"", bytes(2400)):
        collector.add(wav("one", pcm))

    assert collector.audio_bytes("one") == bytes(7200)
    assert (collector.audio_ms("one"), collector.output_sample_rate_hz) == (150, 24000)
    assert collector.timing_summary(after_s=0)["audio_output"]["chunk_duration_ms"]["max"] == 100


def test_what_is_done_is_known(full: EventCollector) -> None:
    assert full.response_is_done()
    assert full.response_is_done("one")
    assert not full.response_is_done("two")
    assert full.response_done("one") == done("one")


def test_moments_are_those_of_arrival(full: EventCollector) -> None:
    assert full.first_received_at("response.created") == 0
    assert full.first_received_at("response.created", after_s=1) == 6
    assert full.first_received_at("response.done", "error") == 5
    assert full.last_received_at("response.output_audio.delta") == 3
    assert full.first_received_at("session.closed") is None
    assert full.last_received_at("session.closed") is None


@pytest.mark.anyio
async def test_it_takes_what_a_client_hears_from_the_call_on(
    client: DuplexClientBase, peer: Peer, collector: EventCollector
) -> None:
    async with client:
        consuming = asyncio.create_task(collector.consume(client))
        peer.emit(created("r"), audio("r", bytes(4800)), done("r"))
        await client.wait_for("response.done", timeout_s=60)
        await acknowledge_collected_playback(client, collector)
        ack = await peer.received(AckPlayback)
    await consuming

    assert (ack.response_id, ack.played_ms, ack.committed_ms) == ("r", 100, 100)
    assert collector.count("session.closed") == 1
