from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest

from omniduplex.benchmarks.turns.scenarios import SCENARIOS
from omniduplex.benchmarks.turns.sounds import NOISES
from omniduplex.benchmarks.turns.speech import (
    CLIP_NAMES,
    SPEECH_DBFS,
    VOICES,
    load_clips,
    loud_frames,
    trim,
)

RATE_HZ = 16_000
FOLDER = resources.files("omniduplex.benchmarks.turns") / "speech"


@pytest.mark.parametrize("voice", VOICES)
@pytest.mark.parametrize("rate_hz", [16_000, 24_000])
def test_every_voice_says_every_clip_at_one_loudness(voice: str, rate_hz: int) -> None:
    clips = load_clips(voice, rate_hz, seed=1)
    assert set(clips) == {*CLIP_NAMES, *NOISES}
    for name in CLIP_NAMES:
        samples = clips[name]
        assert 0.15 < len(samples) / rate_hz < 4.0, name
        level = 10 * np.log10(np.mean(np.square(samples, dtype=np.float64)))
        assert level == pytest.approx(SPEECH_DBFS, abs=1.0), name


@pytest.mark.parametrize("voice", VOICES)
def test_a_clip_is_speech_from_its_first_frame_to_its_last(voice: str) -> None:
    clips = load_clips(voice, RATE_HZ, seed=1)
    for name in ("question_one", "interruption", "yeah"):
        loud = loud_frames(clips[name], RATE_HZ, -60)
        assert loud[0] == 0
        assert loud[-1] >= len(clips[name]) // (RATE_HZ // 100) - 1


def test_silence_around_a_sound_is_trimmed_to_the_frame() -> None:
    sound = np.zeros(RATE_HZ, dtype=np.float32)
    sound[4000:8000] = 0.1
    assert len(trim(sound, RATE_HZ)) == 4000
    assert not len(trim(np.zeros(100, dtype=np.float32), RATE_HZ))


def test_every_cue_has_a_clip() -> None:
    clips = {cue.clip for scenario in SCENARIOS for cue in scenario.cues}
    backgrounds = {scenario.background for scenario in SCENARIOS} - {None}
    assert clips | backgrounds <= {*CLIP_NAMES, *NOISES}


def test_the_page_beside_the_recordings_tells_their_words() -> None:
    told = re.findall(r"^\| `(\w+)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert tuple(told) == CLIP_NAMES
    for voice in VOICES:
        found = {path.name for path in (FOLDER / voice).iterdir()}
        assert found == {f"{name}.wav" for name in CLIP_NAMES}


def test_all_recordings_together_stay_small() -> None:
    files = [path for voice in VOICES for path in (FOLDER / voice).iterdir()]
    assert sum(len(path.read_bytes()) for path in files) <= 2_500_000
