import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.audio.pcm import (
    byte_count,
    decode_f32le,
    duration_ms,
    float32_to_int16,
    int16_to_float32,
    rms,
)

EVERY_SAMPLE = np.arange(-32768, 32768).astype("<i2").tobytes()


def test_int16_is_scaled_to_the_unit_range() -> None:
    samples = int16_to_float32(np.array([-32768, -16384, 0, 1, 32767], dtype="<i2").tobytes())

    assert samples.dtype == np.float32
    assert samples.tolist() == [-1.0, -0.5, 0.0, 1 / 32768, 32767 / 32768]


def test_every_sample_survives_the_way_to_float_and_back() -> None:
    assert float32_to_int16(int16_to_float32(EVERY_SAMPLE)) == EVERY_SAMPLE


def test_float_samples_are_rounded_to_the_nearest() -> None:
    samples = np.array([0.4, 0.6, -0.4, -0.6, 2.6], dtype=np.float32) / np.float32(32768)

    assert np.frombuffer(float32_to_int16(samples), dtype="<i2").tolist() == [0, 1, 0, -1, 3]


def test_float_samples_past_full_scale_are_clipped() -> None:
    samples = np.array([1.0, 7.5, -1.0, -7.5], dtype=np.float32)
    pcm = np.frombuffer(float32_to_int16(samples), dtype="<i2")

    assert pcm.tolist() == [32767, 32767, -32768, -32768]


def test_the_loudest_floats_are_clipped_without_an_overflow() -> None:
    largest = float(np.finfo(np.float32).max)

    assert float32_to_int16(np.array([largest, -largest], np.float32)) == b"\xff\x7f\x00\x80"


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple"):
        int16_to_float32(b"\0\0\0")
    with pytest.raises(ValueError, match="multiple"):
        decode_f32le(b"\0" * 7)


def test_f32le_bytes_become_samples() -> None:
    assert decode_f32le(b"\0\0\x80\x3f\0\0\0\xbf").tolist() == [1.0, -0.5]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_sample_that_is_not_finite_is_refused(bad: float) -> None:
    data = np.array([0.0, bad, 0.0], dtype="<f4").tobytes()

    with pytest.raises(ValueError, match="not finite"):
        decode_f32le(data)


def test_duration_and_byte_count() -> None:
    assert duration_ms(32000, 16000) == 1000.0
    assert duration_ms(2, 8000) == 0.125
    assert byte_count(20, 16000) == 640
    assert byte_count(32, 24000) == 1536


@given(samples=st.integers(0, 10**7), rate=st.integers(8000, 192000))
def test_byte_count_inverts_duration(samples: int, rate: int) -> None:
    assert byte_count(duration_ms(2 * samples, rate), rate) == 2 * samples


def test_level_of_known_signals() -> None:
    square = np.tile(np.array([-32768, 32767], dtype="<i2"), 100).tobytes()
    sine = (np.sin(np.arange(1600) * 2 * np.pi / 16) * 16384).astype("<i2").tobytes()

    assert rms(b"") == 0.0
    assert rms(bytes(640)) == 0.0
    assert rms(square) == pytest.approx(1.0, abs=1e-4)
    assert rms(sine) == pytest.approx(0.5 / math.sqrt(2), abs=1e-4)
