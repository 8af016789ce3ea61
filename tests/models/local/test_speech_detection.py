"""When a turn starts and ends, with the real detector: speech in time, and nothing else at all."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.models.local.conftest import asset
from tests.models.local.speech import at_16k

from omniduplex.audio.pcm import float32_to_int16, int16_to_float32
from omniduplex.audio.vad import SileroVad, VadState
from omniduplex.models.local.messages import (
    EarSettings,
    Heard,
    KeptListening,
    SpeechBegan,
    TurnEnded,
)
from omniduplex.models.local.stages.ear import FRAME_MS, Ear
from omniduplex.models.local.stages.turns import Action, Recognise, Tell
from omniduplex.models.local.voice import Voice

pytestmark = pytest.mark.local

Sound = NDArray[np.float64]
PADDING_MS, HOLD_MS = 300, 500
# Speech is what is louder than this, for the truth of where it begins and ends.
AUDIBLE = 0.01


@pytest.fixture(scope="module")
def vad() -> SileroVad:
    return SileroVad(asset("silero_vad"))


def noise(ms: int, dbfs: float, seed: int = 7) -> Sound:
    return np.random.default_rng(seed).normal(0, 10 ** (dbfs / 20), ms * 16)


def hum(ms: int, dbfs: float) -> Sound:
    seconds = np.arange(ms * 16) / 16_000
    loud: Sound = 10 ** (dbfs / 20) * np.sqrt(2) * np.sin(2 * np.pi * 50 * seconds)
    return loud


def clicks(ms: int) -> Sound:
    return np.where(np.arange(ms * 16) % 4800 < 160, noise(ms, -10), 0)


def cough(ms: int, dbfs: float) -> Sound:
    """A burst that rises at once and dies away."""
    time = np.arange(ms * 16) / (ms * 16)
    return noise(ms, dbfs) * np.exp(-5 * time) * np.minimum(1, 40 * time)


def quiet(ms: int) -> Sound:
    return np.zeros(ms * 16)


def spoken(voice: Voice, text: str) -> Sound:
    """Speech without the silence around it."""
    samples = int16_to_float32(at_16k(voice.say(text), voice.rate)).astype(np.float64)
    audible = np.flatnonzero(np.abs(samples) > AUDIBLE)
    return samples[audible[0] : audible[-1] + 1]


class Listener:
    """An ear with the real detector; `at_ms` is when each thing was told, on the input clock."""

    def __init__(self, vad: SileroVad) -> None:
        self._vad = vad
        self._state = VadState()
        self._ear = Ear(EarSettings(prefix_padding_ms=PADDING_MS, hold_ms=HOLD_MS))
        self._now_ms = 0
        self.told: list[tuple[int, Heard]] = []

    def hear(self, sound: Sound) -> None:
        self._ear.append(float32_to_int16(sound.astype(np.float32)))
        while (frame := self._ear.next_frame()) is not None:
            self._now_ms += FRAME_MS
            (probability,) = self._vad.probabilities([self._state], [int16_to_float32(frame)])
            self._do(self._ear.push(probability, 0.0))

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Tell) and not isinstance(action.heard, KeptListening):
                self.told.append((self._now_ms, action.heard))
            if isinstance(action, Recognise):
                self._do(self._ear.recognised(action.job, "words", 0.0))

    def began(self) -> list[tuple[int, int]]:
        """When each start was told, and what it says."""
        return [
            (at, told.audio_start_ms) for at, told in self.told if isinstance(told, SpeechBegan)
        ]

    def ended(self) -> list[tuple[int, int]]:
        return [(at, told.audio_end_ms) for at, told in self.told if isinstance(told, TurnEnded)]


@pytest.mark.parametrize(
    "sound",
    [
        pytest.param(noise(3000, -45), id="B09-white-noise"),
        pytest.param(clicks(3000), id="B09-clicks"),
        pytest.param(hum(3000, -35), id="B09-hum"),
        pytest.param(noise(3000, -30), id="louder-noise"),
        pytest.param(np.concatenate([quiet(300), noise(100, -12), quiet(600)]), id="B39-burst"),
        pytest.param(np.concatenate([quiet(300), cough(250, -12), quiet(600)]), id="B39-cough"),
    ],
)
def test_what_is_not_speech_starts_no_turn(vad: SileroVad, sound: Sound) -> None:
    listener = Listener(vad)
    listener.hear(sound)
    assert listener.told == []


@pytest.mark.parametrize("background", [quiet(9000), noise(9000, -50), hum(9000, -40)])
def test_b24_two_turns_in_one_append_are_two_turns(
    vad: SileroVad, voice: Voice, background: Sound
) -> None:
    first, second = (spoken(voice, text) for text in ("What is the time?", "And who are you?"))
    sound = np.concatenate([quiet(1000), first, quiet(700), second, quiet(1000)])
    listener = Listener(vad)
    listener.hear(sound + background[: len(sound)])

    first_end = 1000 + len(first) // 16
    starts = [1000, first_end + 700]
    ends = [first_end, starts[1] + len(second) // 16]
    assert len(listener.began()) == len(listener.ended()) == 2
    padded = [starts[0] - PADDING_MS, max(starts[1] - PADDING_MS, listener.ended()[0][1])]
    for (_, told), expected in zip(listener.began(), padded, strict=True):
        assert abs(told - expected) <= 100
    for (_, told), truth in zip(listener.ended(), ends, strict=True):
        assert abs(told - HOLD_MS - truth) <= 250


def test_b27_silence_after_speech_ends_the_turn_in_bounded_time(
    vad: SileroVad, voice: Voice
) -> None:
    question = spoken(voice, "What is the capital of France?")
    listener = Listener(vad)
    listener.hear(np.concatenate([question, quiet(3000)]))

    ((at, _),) = listener.ended()
    assert at <= len(question) // 16 + HOLD_MS + FRAME_MS + 150


@pytest.mark.parametrize("text", ["Stop.", "No, wait.", "What is that?", "Hey, hold on."])
@pytest.mark.parametrize("background", ["quiet", "noise"])
def test_speech_is_noticed_soon_after_its_onset(
    vad: SileroVad, voice: Voice, text: str, background: str
) -> None:
    sound = np.concatenate([quiet(640), spoken(voice, text), quiet(640)])
    if background == "noise":
        sound = sound + noise(len(sound) // 16 + 1, -45)[: len(sound)]
    listener = Listener(vad)
    listener.hear(sound)

    ((at, start_ms), *_) = listener.began()
    assert at - 640 <= 300
    assert start_ms <= 640
