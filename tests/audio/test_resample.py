from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from omniduplex.audio.pcm import byte_count
from omniduplex.audio.resample import StreamResampler

OUT_RATE = 16000


def sine(hz: float, rate: int, seconds: float) -> bytes:
    time = np.arange(round(rate * seconds)) / rate
    wave: NDArray[np.float64] = np.rint(16000 * np.sin(2 * np.pi * hz * time))
    return wave.astype("<i2").tobytes()


def values(pcm: bytes) -> NDArray[np.float64]:
    return np.frombuffer(pcm, dtype="<i2").astype(np.float64)


def snr_db(wanted: bytes, got: bytes) -> float:
    """Signal over error in dB, over the samples both have."""
    size = min(len(wanted), len(got))
    error = float(np.mean((values(got[:size]) - values(wanted[:size])) ** 2))
    return float(10 * np.log10(np.mean(values(wanted) ** 2) / max(error, 1e-9)))


def in_chunks(resampler: StreamResampler, pcm: bytes, size: int) -> bytes:
    parts = [resampler.process(pcm[at : at + size]) for at in range(0, len(pcm), size)]
    return b"".join(parts) + resampler.process(b"", last=True)


@pytest.mark.parametrize("chunk_ms", [7, 20])
@pytest.mark.parametrize("rate", [8000, 24000, 44100, 48000])
def test_b34_chunks_sound_like_one_shot(rate: int, chunk_ms: int) -> None:
    pcm = sine(1000, rate, seconds=10)

    whole = StreamResampler(rate, OUT_RATE).process(pcm, last=True)
    chunked = in_chunks(StreamResampler(rate, OUT_RATE), pcm, byte_count(chunk_ms, rate))

    assert snr_db(whole, chunked) > 60
    assert abs(len(chunked) // 2 - 10 * OUT_RATE) <= 1
    assert len(whole) == len(chunked)


@pytest.mark.parametrize("rate", [8000, 24000, 44100, 48000])
def test_a_sine_stays_that_sine(rate: int) -> None:
    converted = StreamResampler(rate, OUT_RATE).process(sine(1000, rate, 2), last=True)
    ideal = sine(1000, OUT_RATE, 2)
    middle = slice(byte_count(100, OUT_RATE), byte_count(1900, OUT_RATE))

    assert snr_db(ideal[middle], converted[middle]) > 60


def test_a_tone_above_the_new_band_is_removed() -> None:
    converted = StreamResampler(48000, OUT_RATE).process(sine(12000, 48000, 1), last=True)
    middle = values(converted)[1600:-1600]

    assert np.abs(middle).max() <= 1


@given(
    rate=st.sampled_from([8000, 11025, 24000, 44100, 48000]),
    cuts=st.lists(st.integers(0, 6000), max_size=12),
    seed=st.integers(0, 2**16),
)
def test_any_slicing_gives_the_same_audio(rate: int, cuts: list[int], seed: int) -> None:
    noise = np.random.default_rng(seed).integers(-8000, 8000, 6000).astype("<i2").tobytes()
    edges = [0, *sorted(2 * cut for cut in cuts), len(noise)]
    resampler = StreamResampler(rate, OUT_RATE)

    whole = StreamResampler(rate, OUT_RATE).process(noise, last=True)
    sliced = [resampler.process(noise[a:b]) for a, b in pairwise(edges)]
    joined = b"".join(sliced) + resampler.process(b"", last=True)

    assert len(joined) == len(whole)
    assert np.abs(values(joined) - values(whole)).max() <= 1


def test_silence_stays_digital_silence() -> None:
    converted = StreamResampler(24000, OUT_RATE).process(bytes(48000), last=True)

    assert converted == bytes(32000)


def test_equal_rates_pass_through() -> None:
    resampler = StreamResampler(16000, 16000)

    assert resampler.process(b"\1\2\3\4") == b"\1\2\3\4"
    assert resampler.process(b"\5\6", last=True) == b"\5\6"


@pytest.mark.parametrize("rate", [8000, 16000])
def test_half_a_sample_is_refused(rate: int) -> None:
    with pytest.raises(ValueError, match="multiple"):
        StreamResampler(rate, OUT_RATE).process(b"\0\0\0")


def test_the_stream_after_the_last_chunk_is_a_new_one() -> None:
    resampler = StreamResampler(24000, OUT_RATE)
    first = resampler.process(sine(440, 24000, 0.5), last=True)

    assert resampler.process(b"", last=True) == b""
    assert resampler.process(sine(440, 24000, 0.5), last=True) == first


def test_reset_forgets_what_is_inside() -> None:
    resampler = StreamResampler(24000, OUT_RATE)
    resampler.process(sine(440, 24000, 0.25))
    resampler.reset()

    assert resampler.process(bytes(24000), last=True) == bytes(16000)
