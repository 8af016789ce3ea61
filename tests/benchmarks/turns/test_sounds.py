from __future__ import annotations

import numpy as np
import pytest

from omniduplex.benchmarks.turns.sounds import (
    NOISES,
    Samples,
    amplitude,
    at_level,
    band,
    far_away,
    noise,
)

RATE_HZ = 16_000


def dbfs(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(np.square(samples, dtype=np.float64))))


def power_between(samples: Samples, low_hz: float, high_hz: float) -> float:
    spectrum = np.abs(np.fft.rfft(samples)) ** 2
    hz = np.fft.rfftfreq(len(samples), 1 / RATE_HZ)
    return float(spectrum[(hz >= low_hz) & (hz < high_hz)].sum())


@pytest.mark.parametrize("name", list(NOISES))
def test_a_noise_is_the_same_for_the_same_seed_only(name: str) -> None:
    first, again, other = (noise(name, seed, RATE_HZ) for seed in (1, 1, 2))
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", list(NOISES))
def test_a_noise_lasts_as_long_at_any_rate(name: str) -> None:
    lengths = [len(noise(name, 1, rate_hz)) / rate_hz for rate_hz in (16_000, 24_000)]
    assert lengths[0] == pytest.approx(lengths[1], abs=0.001)


def test_a_level_is_rms_over_all() -> None:
    assert dbfs(at_level(noise("white_noise", 1, RATE_HZ), -40)) == pytest.approx(-40, abs=0.01)
    assert not at_level(np.zeros(10, dtype=np.float32), -40).any()


def test_pink_noise_has_equal_power_in_octaves_and_white_noise_twice_as_much() -> None:
    pink, white = noise("pink_noise", 1, RATE_HZ), noise("white_noise", 1, RATE_HZ)
    for low in (250, 500, 1000):
        octaves = [power_between(pink, low, 2 * low), power_between(pink, 2 * low, 4 * low)]
        assert octaves[1] / octaves[0] == pytest.approx(1, rel=0.25)
        octaves = [power_between(white, low, 2 * low), power_between(white, 2 * low, 4 * low)]
        assert octaves[1] / octaves[0] == pytest.approx(2, rel=0.25)


def test_hum_is_the_mains_and_its_overtones() -> None:
    hum = noise("hum", 1, RATE_HZ)
    assert power_between(hum, 45, 55) / power_between(hum, 0, 8000) > 0.6
    assert power_between(hum, 210, 8000) / power_between(hum, 0, 8000) < 0.01


def test_clicks_are_short_and_rare() -> None:
    clicks = noise("clicks", 1, RATE_HZ)
    assert 0 < np.count_nonzero(clicks) / len(clicks) < 0.01


def test_a_cough_begins_hard_and_fades() -> None:
    cough = np.abs(noise("cough", 1, RATE_HZ))
    assert cough[: RATE_HZ // 20].mean() > 4 * cough[RATE_HZ // 5 : RATE_HZ // 4].mean()


def test_what_is_far_away_has_lost_its_high_tones_alone() -> None:
    white = noise("white_noise", 1, RATE_HZ)
    far = far_away(white, RATE_HZ)
    assert power_between(far, 100, 400) / power_between(white, 100, 400) > 0.95
    assert power_between(far, 4000, 8000) / power_between(white, 4000, 8000) < 0.01


def test_a_band_keeps_its_middle() -> None:
    white = noise("white_noise", 1, RATE_HZ)
    kept = band(white, RATE_HZ, 200, 4000)
    assert power_between(kept, 0, 50) / power_between(white, 0, 50) < 0.01
    assert power_between(kept, 800, 1000) / power_between(white, 800, 1000) > 0.95


def test_twenty_db_are_a_factor_of_ten() -> None:
    assert amplitude(20) == pytest.approx(10)
    assert amplitude(0) == 1
