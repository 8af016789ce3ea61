"""Whisper's log-mel features: 80 bands of 16 kHz audio, one frame per 10 ms.

The numbers are those of the Whisper feature extractor (Radford et al. 2022): Hann windows of 25 ms,
power spectra, Slaney mel bands, log10 kept within 8 of the loudest value and scaled near [-1, 1].
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

MEL_RATE = 16000
MEL_BANDS = 80
HOP = 160
_N_FFT = 400
_POWER_FLOOR = 1e-10
_LOG_RANGE = 8.0
_VARIANCE_FLOOR = 1e-7

# Slaney's scale: linear up to 1 kHz (15 mel), then 27 mel for each factor of 6.4.
_LINEAR_HZ_PER_MEL = 200.0 / 3.0
_LOG_START_HZ = 1000.0
_LOG_START_MEL = 15.0
_LOG_STEP = np.log(6.4) / 27.0


def _mel_to_hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    above = np.maximum(mel - _LOG_START_MEL, 0.0)
    hz: NDArray[np.float64] = np.where(
        mel < _LOG_START_MEL, mel * _LINEAR_HZ_PER_MEL, _LOG_START_HZ * np.exp(above * _LOG_STEP)
    )
    return hz


def mel_filters() -> NDArray[np.float32]:
    """[bands, fft bins] triangles between neighbouring band centres, each of area 1 over Hz."""
    nyquist = MEL_RATE / 2
    top_mel = _LOG_START_MEL + np.log(nyquist / _LOG_START_HZ) / _LOG_STEP
    edges = _mel_to_hz(np.linspace(0.0, top_mel, MEL_BANDS + 2))
    low, centre, high = (edges[at : at + MEL_BANDS, None] for at in range(3))
    bins = np.linspace(0.0, nyquist, _N_FFT // 2 + 1)
    rising = (bins - low) / (centre - low)
    falling = (high - bins) / (high - centre)
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return (triangles * (2.0 / (high - low))).astype(np.float32)


_FILTERS = mel_filters()
_WINDOW = np.hanning(_N_FFT + 1)[:-1].astype(np.float32)


def log_mel(samples: NDArray[np.float32], *, normalize: bool = False) -> NDArray[np.float32]:
    """[80, n // 160] features of n samples at 16 kHz; frame i is centred on sample 160 * i.

    `normalize` first gives the samples zero mean and unit variance, which smart-turn models expect.
    Raises ValueError for less than one hop (160 samples).
    """
    if samples.size < HOP:
        raise ValueError(f"log-mel features need {HOP} samples or more, got {samples.size}")
    if normalize:
        samples = _standardized(samples)
    padded = np.pad(samples, _N_FFT // 2, mode="reflect")
    frames = sliding_window_view(padded, _N_FFT)[: samples.size // HOP * HOP : HOP]
    spectrum = np.fft.rfft(frames * _WINDOW)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    logs = np.log10(np.maximum(_FILTERS @ power.T, _POWER_FLOOR))
    features: NDArray[np.float32] = (np.maximum(logs, logs.max() - _LOG_RANGE) + 4.0) / 4.0
    return features


def _standardized(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    mean = samples.mean(dtype=np.float64)
    variance = samples.var(dtype=np.float64)
    standardized: NDArray[np.float64] = (samples - mean) / np.sqrt(variance + _VARIANCE_FLOOR)
    return standardized.astype(np.float32)
