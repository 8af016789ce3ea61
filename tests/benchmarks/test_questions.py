from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from omniduplex.audio.pcm import float32_to_int16
from omniduplex.audio.wav import write_wav
from omniduplex.benchmarks.questions import (
    QUESTION_TEXTS,
    QuestionError,
    load_questions,
    speech_end,
)


def tone(samples: int, rms_db: float) -> bytes:
    """A 1 kHz tone of 16 kHz of this level."""
    amplitude = np.sqrt(2) * 10 ** (rms_db / 20)
    wave = amplitude * np.sin(2 * np.pi * np.arange(samples) / 16)
    return float32_to_int16(wave.astype(np.float32))


@pytest.mark.parametrize(("level_db", "end"), [(-20, 1600), (-39, 1600), (-41, 800), (-80, 800)])
def test_speech_ends_behind_the_last_10_ms_above_40_db(level_db: float, end: int) -> None:
    pcm = tone(800, -12) + tone(800, level_db) + bytes(2 * 3200)
    assert speech_end(pcm) == end


def test_speech_up_to_the_last_sample_ends_there() -> None:
    assert speech_end(tone(1000, -12)) == 1000


def test_silence_has_no_end_of_speech() -> None:
    assert speech_end(bytes(3200)) == 0
    assert speech_end(b"") == 0


def test_recordings_come_by_name_at_16_khz_with_their_words(tmp_path: Path) -> None:
    write_wav(tmp_path / "b.wav", tone(8000, -12), 8000)
    write_wav(tmp_path / "a.wav", tone(1600, -12), 16_000)
    (tmp_path / "b.txt").write_text("where do penguins live\n", "utf-8")
    first, second = load_questions(tmp_path)
    assert (first.name, first.text, len(first.pcm)) == ("a", None, 3200)
    assert (second.name, second.text) == ("b", "where do penguins live")
    assert len(second.pcm) == 2 * 16_000


def test_a_folder_without_speech_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match="no"):
        load_questions(tmp_path)
    write_wav(tmp_path / "silent.wav", bytes(3200), 16_000)
    with pytest.raises(QuestionError, match=r"silent\.wav"):
        load_questions(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hi", b"RIFF\x04\0\0\0WAVE", b"no sound at all"])
def test_a_file_that_is_no_wav_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.wav").write_bytes(content)
    with pytest.raises(QuestionError, match=r"broken\.wav is not a WAV of integer PCM: \w"):
        load_questions(tmp_path)


def test_there_are_twelve_different_questions() -> None:
    assert len(set(QUESTION_TEXTS)) == 12
