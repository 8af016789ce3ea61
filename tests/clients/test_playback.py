"""What a listener has heard at which moment, and what the server is told of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.clients.scripted import MODEL, InlinePeer, Peer, VirtualClock, audio, created, done

from omniduplex.clients.duplex import InlineDuplexClient, RealTimePlayer
from omniduplex.protocol.duplex import AckPlayback, OutputCleared

pytestmark = pytest.mark.anyio

SECOND = bytes(48000)


@pytest.fixture
async def player(
    peer: Peer, clock: VirtualClock, anyio_backend: str
) -> AsyncIterator[RealTimePlayer]:
    async with InlineDuplexClient(InlinePeer(peer), model=MODEL) as client:
        yield RealTimePlayer(client, clock=clock)


def reports(peer: Peer) -> list[tuple[str | None, float, bool]]:
    return [(a.response_id, a.played_ms, a.truncate) for a in peer.sent(AckPlayback)]


async def test_audio_is_heard_as_time_passes(player: RealTimePlayer, clock: VirtualClock) -> None:
    player.feed(audio("r", SECOND))
    assert player.played_ms("r") == 0

    clock.advance(0.25)
    assert (player.played_ms("r"), player.idle) == (250, False)
    clock.advance(5)
    assert (player.played_ms("r"), player.idle) == (1000, True)


async def test_audio_that_comes_late_starts_when_it_comes(
    player: RealTimePlayer, clock: VirtualClock
) -> None:
    player.feed(audio("r", SECOND))
    clock.advance(3)
    player.feed(audio("r", SECOND))
    clock.advance(0.5)

    assert player.played_ms("r") == 1500


async def test_answers_queue_up(player: RealTimePlayer, clock: VirtualClock) -> None:
    player.feed(audio("one", SECOND))
    player.feed(audio("two", SECOND))
    clock.advance(1.5)

    assert (player.played_ms("one"), player.played_ms("two")) == (1000, 500)


async def test_positions_are_reported_when_they_move(
    player: RealTimePlayer, clock: VirtualClock, peer: Peer
) -> None:
    player.feed(audio("r", SECOND))
    await player.report()
    await player.report()
    clock.advance(0.4)
    await player.report()
    player.feed(done("r"))
    clock.advance(0.8)
    await player.report()
    await player.report()

    assert reports(peer) == [("r", 0, False), ("r", 400, False), ("r", 1000, False)]
    assert player.played_ms("r") == 1000


async def test_an_interruption_freezes_what_was_heard(
    player: RealTimePlayer, clock: VirtualClock, peer: Peer
) -> None:
    player.feed(created("r"))
    player.feed(audio("r", SECOND))
    clock.advance(0.3)
    player.feed(done("r", "cancelled"))
    player.feed(audio("r", SECOND))
    clock.advance(5)
    await player.report()
    await player.report()

    assert player.idle
    assert reports(peer) == [("r", 300, True)]
    assert player.played_ms("r") == 300


async def test_a_cleared_buffer_is_silent_at_once(
    player: RealTimePlayer, clock: VirtualClock
) -> None:
    player.feed(audio("one", SECOND))
    player.feed(audio("two", SECOND))
    clock.advance(0.1)
    player.feed(OutputCleared())

    assert player.idle
    assert (player.played_ms("one"), player.played_ms("two")) == (100, 0)


async def test_after_an_interruption_the_next_answer_sounds_at_once(
    player: RealTimePlayer, clock: VirtualClock
) -> None:
    player.feed(audio("one", SECOND * 9))
    clock.advance(0.1)
    player.feed(OutputCleared(response_id="one"))
    player.feed(audio("two", SECOND))
    clock.advance(0.2)

    assert player.played_ms("two") == 200
