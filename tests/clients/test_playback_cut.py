"""A voice that is cut off ends without a click."""

from __future__ import annotations

import math
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.clients.duplex import PlaybackCut, bounded_drain, immediate_cut

RATE_HZ = 24000


def tone(ms: int, phase: float) -> bytes:
    """440 Hz at 80 % of full scale."""
    step = 2 * math.pi * 440 / RATE_HZ
    count = RATE_HZ * ms // 1000
    return pack([round(26000 * math.sin(phase + step * n)) for n in range(count)])


def pack(samples: list[int]) -> bytes:
    return struct.pack(f"<{len(samples)}h", *samples)


def unpack(pcm: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(pcm) // 2}h", pcm)


@given(
    phase=st.floats(0, 2 * math.pi),
    queued_ms=st.integers(0, 200),
    position=st.integers(0, 3000),
    drain_ms=st.integers(40, 80),
    fade_ms=st.integers(10, 30),
)
def test_b15_a_drain_is_bounded_and_ends_in_silence(
    phase: float, queued_ms: int, position: int, drain_ms: int, fade_ms: int
) -> None:
    queued = tone(queued_ms, phase)
    tail = bounded_drain(drain_ms, fade_ms).tail(queued, rate_hz=RATE_HZ, position=position)

    left = max(0, len(queued) // 2 - position)
    assert len(tail) // 2 == min(left, drain_ms * RATE_HZ // 1000)
    if tail:
        assert unpack(tail)[-1] == 0
    steady = 2 * max(0, len(tail) // 2 - fade_ms * RATE_HZ // 1000)
    assert tail[:steady] == queued[2 * position :][:steady]


@pytest.mark.parametrize("level", [32767, -32768, 1000, -1])
def test_b15_the_envelope_only_falls_and_has_no_step(level: int) -> None:
    samples = unpack(bounded_drain(60, 20).tail(pack([level] * 4800), rate_hz=RATE_HZ))

    loudness = [abs(sample) for sample in samples]
    assert all(later <= earlier for earlier, later in pairwise(loudness))
    assert loudness[:960] == [abs(level)] * 960
    # Half a period of a cosine over 480 samples is steepest in the middle.
    steepest = max(earlier - later for earlier, later in pairwise(loudness))
    assert steepest <= abs(level) * math.pi / 2 / 480 + 1


def test_b15_a_sound_that_ends_sooner_fades_sooner() -> None:
    samples = unpack(bounded_drain(60, 20).tail(pack([1000] * 720), rate_hz=RATE_HZ))

    assert samples[:240] == (1000,) * 240
    assert samples[240:] == tuple(sorted(samples[240:], reverse=True))
    assert samples[-1] == 0


def test_b15_an_immediate_cut_leaves_nothing() -> None:
    assert immediate_cut().tail(tone(100, 0), rate_hz=RATE_HZ) == b""


def test_half_a_sample_is_none() -> None:
    assert len(bounded_drain().tail(bytes(5), rate_hz=RATE_HZ)) == 4


@pytest.mark.parametrize(("drain_ms", "fade_ms"), [(10, 20), (60, -1)])
def test_a_fade_is_within_its_drain(drain_ms: float, fade_ms: float) -> None:
    with pytest.raises(ValueError, match="a fade of"):
        PlaybackCut(drain_ms=drain_ms, fade_ms=fade_ms)
