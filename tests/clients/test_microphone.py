from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.benchmarks.stepping_clock import SteppingClock

from omniduplex.clients.microphone import CHUNK_SAMPLES, Microphone

SILENCE = bytes(2 * CHUNK_SAMPLES)


def run_for(
    chunks: int, prepare: Callable[[Microphone], None], **options: int
) -> tuple[Microphone, list[bytes]]:
    """A microphone that was switched off after so many chunks, and what it sent."""
    sent: list[bytes] = []

    async def append(chunk: bytes) -> None:
        sent.append(chunk)
        if len(sent) == chunks:
            raise asyncio.CancelledError

    microphone = Microphone(append, SteppingClock(), **options)
    prepare(microphone)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(microphone.run())
    return microphone, sent


def test_silence_flows_while_nobody_speaks() -> None:
    _, sent = run_for(3, lambda microphone: None)
    assert sent == [SILENCE] * 3


def test_speech_comes_whole_after_its_pause_and_silence_follows() -> None:
    starts = []
    speech = b"\1\2" * (CHUNK_SAMPLES + 5)
    _, sent = run_for(4, lambda microphone: starts.append(microphone.say(speech, pause_ms=20)))
    assert starts == [CHUNK_SAMPLES // 2]
    stream = b"".join(sent)
    assert len(stream) == 4 * len(SILENCE)
    assert stream.rstrip(b"\0") == bytes(CHUNK_SAMPLES) + speech


@pytest.mark.parametrize(("rate_hz", "chunk_ms"), [(24_000, 20), (8000, 100)])
def test_a_chunk_is_as_long_as_one_wants(rate_hz: int, chunk_ms: int) -> None:
    samples = rate_hz * chunk_ms // 1000

    def ask(microphone: Microphone) -> None:
        microphone.say(b"\1\2" * samples, pause_ms=chunk_ms)

    microphone, sent = run_for(3, ask, rate_hz=rate_hz, chunk_ms=chunk_ms)
    assert sent == [bytes(2 * samples), b"\1\2" * samples, bytes(2 * samples)]
    assert microphone.spoken_at(rate_hz) == pytest.approx(101.0)
    assert microphone.sent_at(samples) == pytest.approx(100 + chunk_ms / 1000)


def test_it_is_silent_when_all_was_said() -> None:
    told: list[bool] = []

    def ask(microphone: Microphone) -> None:
        told.append(microphone.silent)
        microphone.say(b"\1\2" * (CHUNK_SAMPLES + 1))
        told.append(microphone.silent)

    told += [run_for(chunks, ask)[0].silent for chunks in (1, 2)]
    assert told == [True, False, True, False, False, True]


def test_a_second_question_queues_behind_the_first() -> None:
    starts: list[int] = []

    def ask_twice(microphone: Microphone) -> None:
        starts.extend(microphone.say(b"\1\1" * 10) for _ in range(2))

    run_for(1, ask_twice)
    assert starts == [0, 10]


def test_a_chunk_is_sent_when_its_last_sample_has_been_spoken() -> None:
    microphone, _ = run_for(3, lambda microphone: None)
    assert microphone.position == 3 * CHUNK_SAMPLES
    for position, chunk in ((1, 1), (CHUNK_SAMPLES, 1), (CHUNK_SAMPLES + 1, 2)):
        expected = microphone.spoken_at(chunk * CHUNK_SAMPLES)
        assert microphone.sent_at(position) == pytest.approx(expected)
    assert microphone.spoken_at(16_000) == pytest.approx(101.0)


@pytest.mark.parametrize("position", [0, 3 * CHUNK_SAMPLES + 1])
def test_what_was_not_sent_has_no_time(position: int) -> None:
    microphone, _ = run_for(3, lambda microphone: None)
    with pytest.raises(ValueError, match="not been sent"):
        microphone.sent_at(position)


def test_one_can_wait_until_a_question_is_out() -> None:
    positions: list[int] = []

    async def append(chunk: bytes) -> None:
        del chunk

    async def scenario() -> None:
        microphone = Microphone(append, SteppingClock())
        stop = microphone.say(SILENCE * 3) + 3 * CHUNK_SAMPLES
        talking = asyncio.create_task(microphone.run())
        await microphone.until_sent(stop)
        positions.append(microphone.position)
        await microphone.until_sent(stop)
        talking.cancel()
        await asyncio.wait([talking])

    asyncio.run(scenario())
    assert positions[0] >= 3 * CHUNK_SAMPLES
