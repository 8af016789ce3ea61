from __future__ import annotations

import numpy as np
import pytest

from omniduplex.benchmarks.turns.sounds import Samples
from omniduplex.benchmarks.turns.user_track import UserTrack

CHUNK = 10


def constant(value: float, samples: int) -> Samples:
    return np.full(samples, value, dtype=np.float32)


def taken(track: UserTrack, chunks: int) -> list[float]:
    pcm = b"".join(track.take(CHUNK) for _ in range(chunks))
    return [value / 32768 for value in np.frombuffer(pcm, dtype="<i2").tolist()]


def test_a_sound_begins_at_its_sample_and_spans_chunks() -> None:
    track = UserTrack()
    track.say(constant(0.5, 15), 7)
    assert taken(track, 3) == [0.0] * 7 + [0.5] * 15 + [0.0] * 8
    assert (track.position, len(track.pcm)) == (30, 60)


def test_what_is_kept_is_what_was_sent() -> None:
    track = UserTrack()
    track.say(constant(0.5, 15), 7)
    assert track.take(CHUNK) + track.take(CHUNK) == bytes(track.pcm)


def test_a_sound_cannot_begin_in_what_was_sent() -> None:
    track = UserTrack()
    track.take(CHUNK)
    with pytest.raises(ValueError, match="sample 9 has been sent"):
        track.say(constant(0.5, 5), 9)


def test_sounds_add_up_and_are_clipped() -> None:
    track = UserTrack()
    track.say(constant(0.75, 10), 0)
    track.say(constant(0.5, 5), 5)
    assert taken(track, 1) == [0.75] * 5 + [32767 / 32768] * 5


def test_a_background_goes_on_for_ever() -> None:
    track = UserTrack()
    track.surround(np.array([0.0, 0.25, 0.5], dtype=np.float32))
    assert taken(track, 2) == [[0.0, 0.25, 0.5][index % 3] for index in range(20)]


def test_an_echo_is_the_loudspeaker_later_and_quieter() -> None:
    track = UserTrack()
    played = np.arange(100, dtype=np.float32) / 128

    def loudspeaker(start: int, count: int) -> Samples:
        return np.array([played[n] if n >= 0 else 0 for n in range(start, start + count)])

    track.echo(loudspeaker, gain_db=-20.0, delay=4)
    expected = [0.0] * 4 + [0.1 * n / 128 for n in range(16)]
    assert taken(track, 2) == pytest.approx(expected, abs=1 / 32768)
