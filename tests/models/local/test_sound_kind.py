import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.local.conftest import asset

from omniduplex.audio.pcm import SAMPLE_BYTES, float32_to_int16, int16_to_float32
from omniduplex.audio.vad import FRAME_SAMPLES, SileroVad, VadState
from omniduplex.benchmarks.turns.speech import load_clips
from omniduplex.models.local.asr import Recognizer
from omniduplex.models.local.sound_kind import (
    CONTEXT_SAMPLES,
    LEAD_FRAMES,
    MOMENTS,
    SEGMENTS,
    Kinds,
    SoundKind,
    load_sound_kind,
    pooled,
    samples_to_hear,
)

WIDTH = 2
SILENCE = bytes(SAMPLE_BYTES * 9600)


def only(row: int, part: int) -> dict[str, np.typing.NDArray[np.float32]]:
    """Layers by which the first number of one quarter of the sound speaks for one kind."""
    weights = np.zeros((3, SEGMENTS * WIDTH), np.float32)
    weights[row, part * WIDTH] = 1.0
    layers = {f"weights_{frames}": weights for frames in MOMENTS}
    return layers | {f"bias_{frames}": np.zeros(3, np.float32) for frames in MOMENTS}


@given(st.sampled_from(MOMENTS), st.integers(0, 2**32 - 1))
def test_kinds_are_shares(frames: int, seed: int) -> None:
    kind = load_sound_kind()
    states = np.random.default_rng(seed).normal(scale=3, size=(50, kind.width))
    kinds = kind.kinds(states.astype(np.float32), frames)
    assert sum(kinds) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in kinds)


@pytest.mark.parametrize("part", range(SEGMENTS))
@pytest.mark.parametrize("frames", MOMENTS)
def test_each_quarter_of_what_is_heard_counts(frames: int, part: int) -> None:
    first, last = 6, samples_to_hear(frames) // 320 + 2
    states = np.zeros((50, WIDTH), np.float32)
    states[np.array_split(np.arange(first, last), SEGMENTS)[part]] = (5.0, 0.0)
    for row, name in enumerate(Kinds._fields):
        kinds = SoundKind(only(row, part)).kinds(states, frames)
        assert getattr(kinds, name) == max(kinds) > 0.9


def test_what_comes_after_the_moment_does_not_count() -> None:
    states = np.ones((50, WIDTH), np.float32)
    later = states.copy()
    later[samples_to_hear(MOMENTS[0]) // 320 + 2 :] = 9.0
    assert np.array_equal(pooled(states, MOMENTS[0]), pooled(later, MOMENTS[0]))


def onset(pcm: bytes, vad: SileroVad) -> int:
    """The first of three frames of speech."""
    state, frame, run = VadState(), 0, 0
    samples = int16_to_float32(pcm)
    while run < 3:
        probability = vad.probability(state, samples[frame * FRAME_SAMPLES :][:FRAME_SAMPLES])
        frame, run = frame + 1, run + 1 if probability >= 0.5 else 0
    return frame - 3


@pytest.fixture(scope="module")
def heard(recognizer: Recognizer) -> dict[tuple[str, str], Kinds]:
    """What some sounds are taken for 416 ms after their onset, by voices never heard before."""
    vad, kind = SileroVad(asset("silero_vad")), load_sound_kind()
    found = {}
    for voice in ("slt", "kal16"):
        clips = load_clips(voice, 16_000, seed=1)
        for name in ("interruption", "question_two", "okay", "right", "mm_hm", "um"):
            pcm = SILENCE + float32_to_int16(clips[name]) + SILENCE
            start = onset(pcm, vad) - LEAD_FRAMES
            stop = start + LEAD_FRAMES + MOMENTS[-1]
            frame_bytes = SAMPLE_BYTES * FRAME_SAMPLES
            piece = pcm[start * frame_bytes : stop * frame_bytes]
            states = recognizer.encode(piece, CONTEXT_SAMPLES)
            found[voice, name] = kind.kinds(states, MOMENTS[-1])
    return found


@pytest.mark.local
def test_the_layers_fit_the_recogniser_that_we_have(recognizer: Recognizer) -> None:
    assert recognizer.encode(SILENCE, CONTEXT_SAMPLES).shape == (50, load_sound_kind().width)


@pytest.mark.local
@pytest.mark.parametrize("voice", ["slt", "kal16"])
def test_an_interruption_sounds_different_from_assent(
    heard: dict[tuple[str, str], Kinds], voice: str
) -> None:
    def floor(*names: str) -> float:
        return sum(heard[voice, name].floor for name in names) / len(names)

    # 0.98 and 0.1 at most; one word alone may be taken for the other kind.
    assert floor("interruption", "question_two") > floor("okay", "right", "mm_hm") + 0.3
    tics = {name: kinds.tic for (speaker, name), kinds in heard.items() if speaker == voice}
    assert max(tics, key=tics.__getitem__) == "um"
