import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from omniduplex.audio.pcm import int16_to_float32
from omniduplex.audio.stream import InputDecoder
from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE, SileroVad, VadState

SPEECH = Path(__file__).parent / "data" / "librivox_2s.ulaw"

Frames = list[NDArray[np.float32]]


def frames(samples: NDArray[np.float32]) -> Frames:
    whole = samples.size // FRAME_SAMPLES
    return [samples[at * FRAME_SAMPLES :][:FRAME_SAMPLES] for at in range(whole)]


def in_turn(vad: SileroVad, state: VadState, stream: Frames) -> list[float]:
    return [vad.probability(state, frame) for frame in stream]


@pytest.fixture(scope="module")
def vad(silero_path: Path) -> SileroVad:
    return SileroVad(silero_path)


@pytest.fixture(scope="module")
def speech() -> Frames:
    decoder = InputDecoder("g711_ulaw", 8000, VAD_RATE)
    return frames(int16_to_float32(decoder.process(SPEECH.read_bytes()) + decoder.flush()))


@pytest.fixture
def silence() -> Frames:
    return frames(np.zeros(2 * VAD_RATE, dtype=np.float32))


@pytest.fixture
def noise() -> Frames:
    return frames(np.random.default_rng(0).normal(0, 0.05, 2 * VAD_RATE).astype(np.float32))


def test_the_module_loads_without_onnxruntime() -> None:
    program = "import sys; sys.modules['onnxruntime'] = None; import omniduplex.audio.vad"

    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.local
def test_speech_scores_high(vad: SileroVad, speech: Frames) -> None:
    scores = in_turn(vad, VadState(), speech)

    assert max(scores) > 0.95
    assert np.mean(np.array(scores) > 0.5) > 0.6


@pytest.mark.local
def test_silence_and_noise_score_low(vad: SileroVad, silence: Frames, noise: Frames) -> None:
    assert max(in_turn(vad, VadState(), silence)) < 0.1
    assert max(in_turn(vad, VadState(), noise)) < 0.2


@pytest.mark.local
def test_the_score_falls_soon_after_speech_ends(
    vad: SileroVad, speech: Frames, silence: Frames
) -> None:
    state = VadState()
    in_turn(vad, state, speech)

    assert max(in_turn(vad, state, silence)[5:]) < 0.2


@pytest.mark.local
def test_streams_do_not_hear_each_other(vad: SileroVad, speech: Frames, noise: Frames) -> None:
    alone = in_turn(vad, VadState(), speech)
    first, second = VadState(), VadState()
    mixed = []
    for ours, other in zip(speech, noise, strict=True):
        mixed.append(vad.probability(first, ours))
        vad.probability(second, other)

    assert mixed == alone


@pytest.mark.local
def test_a_batch_scores_as_each_stream_alone(
    vad: SileroVad, speech: Frames, silence: Frames, noise: Frames
) -> None:
    streams = [speech, silence, noise]
    states = [VadState() for _ in streams]
    steps = [vad.probabilities(states, step) for step in zip(*streams, strict=True)]
    batched = np.array(steps).T

    alone = np.array([in_turn(vad, VadState(), stream) for stream in streams])
    assert batched == pytest.approx(alone, abs=1e-5)


@pytest.mark.local
def test_no_stream_is_no_score(vad: SileroVad) -> None:
    assert vad.probabilities([], []) == []


@pytest.mark.local
@pytest.mark.parametrize("samples", [0, 1, 511, 513])
def test_a_frame_of_another_size_is_refused(vad: SileroVad, samples: int) -> None:
    with pytest.raises(ValueError, match="512"):
        vad.probability(VadState(), np.zeros(samples, dtype=np.float32))


@pytest.mark.local
def test_a_state_without_a_frame_is_refused(vad: SileroVad) -> None:
    with pytest.raises(ValueError, match="shorter"):
        vad.probabilities([VadState()], [])
