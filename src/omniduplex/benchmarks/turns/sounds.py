"""Sounds that are not speech, made from a seed, and what a room does to speech."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
HUM_HZ = 50.0
CLICK_EVERY_S = 0.7
CLICK_S = 0.002
COUGH_S = 0.28
LAUGH_HZ = 5.0
LAUGH_PITCH_HZ = 210.0
# A voice from the next room: what a closed door lets through.
FAR_CUTOFF_HZ = 1000.0


def amplitude(db: float) -> float:
    """The factor that is so many dB."""
    return float(10 ** (db / 20))


def at_level(samples: Samples, dbfs: float) -> Samples:
    """The same sound with its RMS at a level; silence stays silent."""
    power = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0
    if power == 0.0:
        return samples
    return (samples * np.float32(amplitude(dbfs) / power)).clip(-1.0, 1.0).astype(np.float32)


def band(samples: Samples, rate_hz: int, low_hz: float, high_hz: float) -> Samples:
    """What a filter with smooth skirts (second order) lets pass between two frequencies."""
    spectrum = np.fft.rfft(samples)
    hz = np.fft.rfftfreq(len(samples), 1 / rate_hz)
    gain = 1 / np.sqrt(1 + (hz / high_hz) ** 4)
    if low_hz > 0:
        gain *= 1 / np.sqrt(1 + (low_hz / np.maximum(hz, 1e-3)) ** 4)
    return np.fft.irfft(spectrum * gain, len(samples)).astype(np.float32)


def far_away(samples: Samples, rate_hz: int) -> Samples:
    """Speech that is meant for somebody else, farther from the microphone."""
    return band(samples, rate_hz, 0.0, FAR_CUTOFF_HZ)


def white_noise(rng: np.random.Generator, rate_hz: int, seconds: float) -> Samples:
    """Equal power at every frequency."""
    return rng.standard_normal(round(seconds * rate_hz)).astype(np.float32)


def pink_noise(rng: np.random.Generator, rate_hz: int, seconds: float) -> Samples:
    """Equal power in every octave above 20 Hz."""
    white = white_noise(rng, rate_hz, seconds)
    hz = np.fft.rfftfreq(len(white), 1 / rate_hz)
    spectrum = np.fft.rfft(white) / np.sqrt(np.maximum(hz, 20.0))
    return np.fft.irfft(spectrum, len(white)).astype(np.float32)


def hum(rng: np.random.Generator, rate_hz: int, seconds: float) -> Samples:
    """The mains and its overtones."""
    time = np.arange(round(seconds * rate_hz)) / rate_hz
    phases = rng.uniform(0, 2 * np.pi, 4)
    tones: list[NDArray[np.float64]] = [
        np.sin(2 * np.pi * HUM_HZ * n * time + phase) / n for n, phase in enumerate(phases, start=1)
    ]
    summed: NDArray[np.float64] = np.sum(np.stack(tones), axis=0)
    return summed.astype(np.float32)


def clicks(rng: np.random.Generator, rate_hz: int, seconds: float) -> Samples:
    """A key struck now and then."""
    samples = np.zeros(round(seconds * rate_hz), dtype=np.float32)
    length = round(CLICK_S * rate_hz)
    decay = np.exp(-np.arange(length) / (length / 4)).astype(np.float32)
    for beat in range(int(seconds / CLICK_EVERY_S)):
        start = round((beat + rng.uniform(0.1, 0.9)) * CLICK_EVERY_S * rate_hz)
        burst = decay * rng.standard_normal(length).astype(np.float32)
        end = min(start + length, len(samples))
        samples[start:end] = burst[: end - start]
    return samples


def cough(rng: np.random.Generator, rate_hz: int) -> Samples:
    """Two bursts of breath: a sharp attack, a fast decay, nothing voiced."""
    length = round(COUGH_S * rate_hz)
    time = np.arange(length) / rate_hz
    shape = np.minimum(time / 0.008, 1.0) * np.exp(-time / 0.07)
    bursts = [
        band(rng.standard_normal(length).astype(np.float32), rate_hz, 350.0, 3500.0) * shape
        for _ in range(2)
    ]
    gap = np.zeros(round(0.06 * rate_hz), dtype=np.float32)
    return np.concatenate([bursts[0], gap, 0.7 * bursts[1]]).astype(np.float32)


def laugh(rng: np.random.Generator, rate_hz: int) -> Samples:
    """Five short voiced breaths, falling in pitch."""
    breaths = []
    for count in range(5):
        time = np.arange(round(rate_hz / LAUGH_HZ)) / rate_hz
        pitch = LAUGH_PITCH_HZ * (1 - 0.06 * count)
        voiced = 2 * ((time * pitch) % 1.0) - 1
        breath = voiced + 0.6 * rng.standard_normal(len(time))
        shape = np.sin(np.pi * np.minimum(time * LAUGH_HZ / 0.6, 1.0)) ** 2
        breaths.append((0.88**count) * breath * shape)
    return band(np.concatenate(breaths).astype(np.float32), rate_hz, 300.0, 2500.0)


NOISE_S = 3.0
NOISES: dict[str, Callable[[np.random.Generator, int], Samples]] = {
    "white_noise": lambda rng, rate_hz: white_noise(rng, rate_hz, NOISE_S),
    "pink_noise": lambda rng, rate_hz: pink_noise(rng, rate_hz, NOISE_S),
    "hum": lambda rng, rate_hz: hum(rng, rate_hz, NOISE_S),
    "clicks": lambda rng, rate_hz: clicks(rng, rate_hz, NOISE_S),
    "cough": cough,
    "laugh": laugh,
}


def noise(name: str, seed: int, rate_hz: int) -> Samples:
    """One of `NOISES`; the same for the same seed and rate.

    Raises KeyError for a name that is none of them.
    """
    return NOISES[name](np.random.default_rng((seed, zlib.crc32(name.encode()))), rate_hz)
