import numpy as np
import pytest
from numpy.typing import NDArray

from omniduplex.audio.mel import HOP, MEL_BANDS, MEL_RATE, log_mel, mel_filters

BIN_HZ = np.linspace(0, 8000, 201)


def sine(hz: float, samples: int = 16000) -> NDArray[np.float32]:
    wave: NDArray[np.float64] = 0.5 * np.sin(2 * np.pi * hz * np.arange(samples) / MEL_RATE)
    return wave.astype(np.float32)


def noise(samples: int, scale: float = 0.1) -> NDArray[np.float32]:
    return np.random.default_rng(7).normal(0, scale, samples).astype(np.float32)


def test_filters_cover_the_band_with_triangles() -> None:
    filters = mel_filters()

    assert filters.shape == (MEL_BANDS, 201)
    assert (filters >= 0).all()
    assert filters.any(axis=1).all()
    assert (filters[:, [0, -1]] == 0).all()
    assert (np.diff(filters.argmax(axis=1)) >= 0).all()
    for band in filters:
        (lit,) = band.nonzero()
        assert (np.diff(lit) == 1).all()


def test_wide_filters_have_unit_area() -> None:
    """Narrow ones hold two or three bins, too few to sum their area."""
    area = mel_filters().sum(axis=1) * (BIN_HZ[1] - BIN_HZ[0])

    assert area[60:] == pytest.approx(np.ones(20), rel=0.05)


def test_bands_are_even_below_1_khz_and_geometric_above() -> None:
    """45.245 mel up to 8 kHz over 81 intervals: 37.24 Hz each at first, then a factor of 1.0392."""
    filters = mel_filters()
    centre = filters @ BIN_HZ / filters.sum(axis=1)

    assert np.diff(centre[:25]).mean() == pytest.approx(37.24, rel=0.02)
    assert centre[70] / centre[40] == pytest.approx(1.0392**30, rel=0.02)


@pytest.mark.parametrize("hz", [500, 1000, 2000, 4000, 7000])
def test_a_sine_lights_the_band_of_its_frequency(hz: int) -> None:
    """Within one FFT bin (40 Hz) below 1 kHz, within a band's width (4 %) above."""
    response = mel_filters()[log_mel(sine(hz)).mean(axis=1).argmax()]
    centre = response @ BIN_HZ / response.sum()

    assert abs(centre - hz) <= max(40, 0.04 * hz)


@pytest.mark.parametrize("samples", [160, 161, 319, 320, 16000, 16001, 128000])
def test_one_frame_for_each_whole_hop(samples: int) -> None:
    features = log_mel(noise(samples))

    assert features.shape == (MEL_BANDS, samples // HOP)
    assert features.dtype == np.float32


def test_less_than_a_hop_is_refused() -> None:
    with pytest.raises(ValueError, match="160"):
        log_mel(noise(159))


def test_a_shift_by_a_hop_shifts_a_frame() -> None:
    signal = noise(16000)
    whole, shifted = log_mel(signal), log_mel(signal[HOP:])

    # The first and last frames reach into the mirrored edges.
    assert shifted[:, 2:-2] == pytest.approx(whole[:, 3:-2], abs=1e-5)


def test_frames_are_centred_on_their_hop() -> None:
    click = np.zeros(16000, dtype=np.float32)
    click[50 * HOP] = 1.0
    energy = log_mel(click).mean(axis=0)

    assert energy.argmax() == 50
    assert energy[49] == pytest.approx(energy[51], abs=1e-5)


def test_silence_is_the_floor_everywhere() -> None:
    """log10(1e-10) = -10, and (-10 + 4) / 4 = -1.5."""
    assert log_mel(np.zeros(16000, dtype=np.float32)) == pytest.approx(-1.5, abs=1e-6)


def test_values_stay_within_eight_decades_of_the_loudest() -> None:
    features = log_mel(np.concatenate([np.zeros(8000, dtype=np.float32), sine(1000, 8000)]))

    assert features.max() - features.min() == pytest.approx(2.0, abs=1e-6)


def test_ten_times_louder_adds_half() -> None:
    """Power rises by 100, log10 by 2, a quarter of it is 0.5."""
    assert log_mel(noise(16000, 0.1)) - log_mel(noise(16000, 0.01)) == pytest.approx(0.5, abs=1e-4)


def test_normalizing_cancels_gain_and_offset() -> None:
    signal = noise(16000)
    plain = log_mel(signal, normalize=True)

    assert log_mel(5 * signal + np.float32(0.3), normalize=True) == pytest.approx(plain, abs=1e-3)
    assert log_mel((signal - signal.mean()) / signal.std()) == pytest.approx(plain, abs=1e-3)


def test_normalizing_silence_stays_finite() -> None:
    assert np.isfinite(log_mel(np.zeros(16000, dtype=np.float32), normalize=True)).all()
