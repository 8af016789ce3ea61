from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from omniduplex.models.local import asr
from omniduplex.models.local.asr import looks_looped, repeats_phrase, split_windows, spoken_tokens


def test_a_phrase_over_and_over_is_a_loop() -> None:
    assert looks_looped([7] * 6, "a", 10.0)
    assert looks_looped([1, 2, 3] * 6, "a", 10.0)
    assert looks_looped([9, 8, 4] + [1, 2] * 5 + [3], "a", 10.0)


def test_ordinary_repetition_is_no_loop() -> None:
    assert not looks_looped([7] * 4, "no no no no", 2.0)
    assert not looks_looped([1, 2, 3, 1, 2, 3], "bye bye", 2.0)
    assert not looks_looped(list(range(40)), "all of them differ", 10.0)
    assert not looks_looped([], "", 1.0)


def test_more_words_than_anyone_can_say_is_a_loop() -> None:
    assert looks_looped([1, 2], "w " * 13, 2.0)
    assert not looks_looped([1, 2], "w " * 12, 2.0)
    assert not looks_looped([1, 2], "yes please do", 0.3)


@given(st.lists(st.integers(0, 3), max_size=6), st.integers(1, 4), st.integers(0, 12))
def test_repeats_are_counted_per_phrase(lead: list[int], length: int, times: int) -> None:
    phrase = [10 + index for index in range(length)]
    looped = repeats_phrase(
        [*(value + 100 * i for i, value in enumerate(lead)), *phrase * times], length
    )
    assert looped == (times > asr.MAX_TOKEN_REPEATS)


@given(st.integers(0, 100 * asr.RATE))
def test_windows_fit_the_context_and_lose_nothing(count: int) -> None:
    samples: NDArray[np.float32] = np.arange(count, dtype=np.float32)
    windows = list(split_windows(samples))

    assert all(0 < len(window) <= asr.FULL_CONTEXT_SAMPLES for window in windows)
    assert np.array_equal(np.concatenate([samples[:0], *windows]), samples)


def test_cut_is_at_the_pause() -> None:
    samples = np.ones(40 * asr.RATE, np.float32)
    samples[28 * asr.RATE : 28 * asr.RATE + 8_000] = 0.0
    first, _ = split_windows(samples)

    assert 28.0 <= len(first) / asr.RATE <= 28.5


def test_segments_that_begin_in_the_padding_are_dropped() -> None:
    end, zero = 100, 200

    def at(seconds: float) -> int:
        return zero + round(seconds / 0.02)

    sequence = [zero, 1, 2, at(1.5), at(1.5), 3, at(3.0), at(3.0), 4, 5, at(4.0), end]
    assert spoken_tokens(sequence, 2.0, end, zero) == [1, 2, 3]
    assert spoken_tokens([1, 2, 150, 3], 2.0, end, zero) == [1, 2, 3]


@pytest.mark.local
def test_language_must_be_known(whisper_base: Path) -> None:
    with pytest.raises(ValueError, match=r"<\|xx\|>"):
        asr.Recognizer(whisper_base, language="xx")


@pytest.mark.local
def test_noise_and_silence_are_no_words(recognizer: asr.Recognizer) -> None:
    noise = np.random.default_rng(0).normal(scale=800, size=3 * asr.RATE).astype(np.int16)
    for pcm in (bytes(2 * 2 * asr.RATE), noise.tobytes()):
        heard = recognizer.transcribe(pcm)
        assert heard.text == ""
        assert heard.no_speech_prob > asr.MAX_NO_SPEECH_PROB


@pytest.mark.local
def test_too_short_or_no_audio_is_nothing(recognizer: asr.Recognizer) -> None:
    assert recognizer.transcribe(b"") == asr.Recognition("", 1.0, 0.0)
    assert recognizer.transcribe(bytes(1_600)) == asr.Recognition("", 1.0, 0.05)


@pytest.mark.local
def test_a_decoder_that_got_stuck_is_asked_once_more_and_briefly(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts_s = []

    def stuck(samples: NDArray[np.float32], padded: int) -> tuple[list[int], float]:
        contexts_s.append(padded / asr.RATE)
        return [7] * 20, 0.1

    monkeypatch.setattr(recognizer, "_decode", stuck)
    recognizer.transcribe(bytes(2 * 2 * asr.RATE))
    assert contexts_s == [5.0, 8.0]


@pytest.mark.local
def test_a_decoder_that_hears_no_speech_is_not_asked_again(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognizer, "_decode", lambda samples, padded: ([7] * 20, 0.6))
    assert recognizer.transcribe(bytes(2 * 2 * asr.RATE)).text == ""
