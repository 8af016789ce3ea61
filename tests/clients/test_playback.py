"""What a listener has heard at which moment, and what the server is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clients.scripted import (
    MODEL,
    InlinePeer,
    Peer,
    VirtualClock,
    audio,
    created,
    done,
    wav,
)

from omniduplex.clients.duplex import (
    AudioFormat,
    InlineDuplexClient,
    PlaybackTracker,
    RealTimePlayer,
    bounded_drain,
)
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


async def test_of_a_long_conversation_only_the_newest_answers_are_known(
    player: RealTimePlayer, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omniduplex.clients.playback.ANSWERS_KEPT", 2)
    for name in ("one", "two", "three"):
        player.feed(audio(name, SECOND))
        player.feed(done(name))
        clock.advance(2)
        await player.report()

    assert [player.played_ms(name) for name in ("one", "two", "three")] == [0, 1000, 1000]


async def test_what_comes_as_wav_is_played_as_samples(
    tracker: PlaybackTracker, phone: PhoneLeg, clock: VirtualClock
) -> None:
    for pcm in (SECOND, b"", SECOND):
        tracker.feed(wav("r", pcm))
    clock.advance(1.8)

    assert phone.sent == SECOND * 2
    assert tracker.played_ms("r") == 1500


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


class PhoneLeg:
    """A loudspeaker at the far end of a line: what is heard lags by 300 ms, and clicks nowhere."""

    LAG_MS = 300.0
    IN_FLIGHT_MS = 20.0

    def __init__(self, clock: VirtualClock) -> None:
        self.sent = bytearray()
        self._clock = clock
        self._started_at = clock.now()
        self._ends_at_ms = 0.0

    def play(self, pcm: bytes, audio_format: AudioFormat) -> None:
        assert audio_format == AudioFormat(sample_rate_hz=24000)
        self.sent += pcm
        self._ends_at_ms += len(pcm) / 48

    def position_ms(self) -> float:
        passed_ms = (self._clock.now() - self._started_at) * 1000
        return min(self._ends_at_ms, max(0.0, passed_ms - self.LAG_MS))

    def stop(self) -> float:
        self._ends_at_ms = min(self._ends_at_ms, self.position_ms() + self.IN_FLIGHT_MS)
        return self._ends_at_ms


@pytest.fixture
def phone(clock: VirtualClock) -> PhoneLeg:
    return PhoneLeg(clock)


@pytest.fixture
async def tracker(
    peer: Peer, phone: PhoneLeg, clock: VirtualClock, anyio_backend: str
) -> AsyncIterator[PlaybackTracker]:
    async with InlineDuplexClient(InlinePeer(peer), model=MODEL) as client:
        yield PlaybackTracker(
            client, position_ms=phone.position_ms, play=phone.play, stop=phone.stop, clock=clock
        )


async def test_b23_what_is_acknowledged_is_what_the_loudspeaker_tells(
    tracker: PlaybackTracker, clock: VirtualClock, peer: Peer
) -> None:
    tracker.feed(audio("r", SECOND))
    await tracker.report()
    clock.advance(0.8)
    await tracker.report()
    tracker.feed(done("r"))
    clock.advance(9)
    await tracker.report()

    assert reports(peer) == [("r", 0, False), ("r", 500, False), ("r", 1000, False)]
    assert tracker.idle


async def test_b23_a_barge_in_truncates_where_the_listener_was(
    tracker: PlaybackTracker, clock: VirtualClock, peer: Peer
) -> None:
    tracker.feed(audio("r", SECOND))
    clock.advance(0.7)
    cut_off = tracker.cut()
    clock.advance(9)
    tracker.feed(done("r", "cancelled"))
    await tracker.report()

    assert cut_off == [("r", "item_r", 420)]
    assert reports(peer) == [("r", 420, True)]
    assert tracker.played_ms("r") == tracker.played_ms("item_r") == 420


async def test_b23_a_position_is_enough_for_who_plays_by_himself(
    peer: Peer, anyio_backend: str
) -> None:
    async with InlineDuplexClient(InlinePeer(peer), model=MODEL) as client:
        positions = iter([0.0, 250.5])
        tracker = PlaybackTracker(client, position_ms=lambda: next(positions))
        tracker.feed(audio("r", SECOND))
        await tracker.report()
        await tracker.report()

    assert reports(peer) == [("r", 0, False), ("r", 250, False)]


async def test_positions_are_reported_in_batches(
    tracker: PlaybackTracker, clock: VirtualClock, peer: Peer
) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(tracker.run())
        for _ in range(50):
            tracker.feed(audio("r", bytes(960)))
        clock.advance(0.5)
        for _ in range(3):
            await clock.sleeping()
            clock.advance(0.1)
        await clock.sleeping()
        running.cancel()

    assert [heard for _, heard, _ in reports(peer)] == [300, 400, 500]


async def test_audio_of_an_answer_that_was_cut_off_is_not_played(
    tracker: PlaybackTracker, phone: PhoneLeg, clock: VirtualClock
) -> None:
    tracker.feed(audio("one", SECOND))
    tracker.cut("one")
    tracker.feed(audio("one", SECOND))
    await tracker.report()
    tracker.feed(audio("one", SECOND))
    tracker.feed(audio("two", SECOND))

    assert len(phone.sent) == 2 * len(SECOND)


async def test_an_interruption_silences_what_is_queued_behind(
    player: RealTimePlayer, clock: VirtualClock, peer: Peer
) -> None:
    player.feed(audio("one", SECOND))
    player.feed(audio("two", SECOND))
    clock.advance(0.4)
    cut_off = player.cut("one")
    await player.report()

    assert [(name, heard) for name, _, heard in cut_off] == [("one", 400), ("two", 0)]
    assert player.idle
    assert reports(peer) == [("one", 400, True), ("two", 0, True)]


async def test_an_answer_that_has_sounded_is_cut_off_without_silencing_the_next(
    player: RealTimePlayer, clock: VirtualClock
) -> None:
    player.feed(audio("one", SECOND))
    clock.advance(1)
    player.feed(audio("two", SECOND))
    clock.advance(0.2)

    assert player.cut("one") == [("one", "item_one", 1000)]
    clock.advance(0.3)
    assert player.played_ms("two") == 500


async def test_b15_a_drain_is_heard_and_no_longer_than_it_may_be(
    peer: Peer, clock: VirtualClock, anyio_backend: str
) -> None:
    async with InlineDuplexClient(InlinePeer(peer), model=MODEL) as client:
        player = RealTimePlayer(client, clock=clock, cut=bounded_drain(60, 20))
        player.feed(audio("one", SECOND))
        clock.advance(0.5)
        assert player.cut() == [("one", "item_one", 560)]
        assert not player.idle
        clock.advance(0.06)
        assert player.idle

        player.feed(audio("two", SECOND))
        clock.advance(0.97)
        assert player.cut() == [("two", "item_two", 1000)]


class Deck:
    """A loudspeaker under a test's thumb: it plays as much as it is told to, and drains 20 ms."""

    def __init__(self) -> None:
        self.queued_ms = self.heard_ms = 0.0

    def play(self, pcm: bytes, _: AudioFormat) -> None:
        self.queued_ms += len(pcm) / 48

    def position_ms(self) -> float:
        return self.heard_ms

    def stop(self) -> float:
        self.queued_ms = min(self.queued_ms, self.heard_ms + 20)
        return self.queued_ms

    def turn(self, ms: int) -> None:
        self.heard_ms = min(self.queued_ms, self.heard_ms + ms)


STEPS = st.lists(
    st.tuples(st.sampled_from(["feed", "turn", "cut", "cut all"]), st.integers(1, 300))
)


@given(steps=STEPS)
def test_what_was_heard_of_all_answers_is_what_has_sounded(
    steps: list[tuple[str, int]],
) -> None:
    deck = Deck()
    client = InlineDuplexClient(InlinePeer(Peer()), model=MODEL)
    tracker = PlaybackTracker(client, play=deck.play, position_ms=deck.position_ms, stop=deck.stop)
    names = ["0"]
    for step, ms in steps:
        match step:
            case "feed":
                tracker.feed(audio(names[-1], bytes(48 * ms)))
            case "turn":
                deck.turn(ms)
            case "cut":
                tracker.cut(names[-1])
                names.append(str(len(names)))
            case "cut all":
                tracker.cut()
                names.append(str(len(names)))
        assert tracker.idle == (deck.heard_ms == deck.queued_ms)
    deck.turn(10_000)

    assert sum(map(tracker.played_ms, names)) == round(deck.queued_ms)
