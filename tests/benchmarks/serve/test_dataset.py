from __future__ import annotations

from pathlib import Path

import pytest

from omniduplex.audio.wav import write_wav
from omniduplex.benchmarks.questions import QuestionError, speech_end
from omniduplex.benchmarks.serve.dataset import Synthetic, load_dataset
from omniduplex.benchmarks.turns.speech import VOICES


def test_recordings_come_before_all_else(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", b"\0\x40" * 8000, 8000)
    (found,) = load_dataset(tmp_path, Synthetic.TONE, 1)
    assert found.name == "a"
    assert len(found.pcm) == pytest.approx(2 * 16_000, abs=200)


def test_a_folder_without_recordings_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(QuestionError):
        load_dataset(tmp_path, Synthetic.TONE, 1)


@pytest.mark.parametrize("synthetic", Synthetic)
def test_what_is_made_here_can_be_heard_and_is_the_same_for_a_seed(synthetic: Synthetic) -> None:
    found = load_dataset(None, synthetic, 7)
    assert all(speech_end(question.pcm) for question in found)
    assert found == load_dataset(None, synthetic, 7)
    assert len({question.name for question in found}) > 4


def test_speech_is_of_every_voice() -> None:
    names = {question.name.split()[0] for question in load_dataset(None, Synthetic.SPEECH, 1)}
    assert names == set(VOICES)
