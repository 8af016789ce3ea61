from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from omniduplex.models.local import asr
from omniduplex.models.local.asr import (
    looks_looped,
    repeats_phrase,
    repeats_segment,
    segments,
    split_windows,
    spoken_tokens,
)


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


def test_segments_lie_between_timestamps() -> None:
    zero = 200
    found = segments([zero, 1, 2, zero + 50, zero + 60, 3, zero + 100, 150, 4], 100, zero)

    assert [segment.tokens for segment in found] == [[1, 2], [3], [4]]
    assert [segment.start for segment in found] == pytest.approx([0.0, 1.2, 2.0])
    assert [segment.seconds for segment in found] == pytest.approx([1.0, 0.8, float("inf")])


def test_a_segment_is_said_again_as_far_as_the_decoder_got() -> None:
    said = [1, 2, 3, 4, 5, 6]

    assert repeats_segment(said, said)
    assert repeats_segment(said, said[:4])
    assert not repeats_segment(said, said[:3])  # too little to tell
    assert not repeats_segment(said, [1, 2, 3, 4, 9])
    assert not repeats_segment(said, [*said, 7])
    assert repeats_segment([1, 2], [1, 2])


@pytest.mark.local
def test_language_must_be_known(whisper_base: Path) -> None:
    with pytest.raises(ValueError, match=r"<\|xx\|>"):
        asr.Recognizer(whisper_base, language="xx")


@pytest.mark.local
def test_the_noise_of_a_quiet_room_and_silence_are_no_words(recognizer: asr.Recognizer) -> None:
    noise = np.random.default_rng(0).normal(scale=10, size=3 * asr.RATE).astype(np.int16)
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

    monkeypatch.setattr(recognizer, "_hear", stuck)
    recognizer.transcribe(bytes(2 * 2 * asr.RATE))
    assert contexts_s == [5.0, 8.0]


@pytest.mark.local
def test_a_decoder_that_hears_no_speech_is_not_asked_again(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognizer, "_hear", lambda samples, padded: ([7] * 20, 0.6))
    assert recognizer.transcribe(bytes(2 * 2 * asr.RATE)).text == ""


@pytest.mark.local
def test_a_question_ends_once(recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [recognizer._token("\u0120today"), recognizer._token("?.")]
    monkeypatch.setattr(recognizer, "_hear", lambda samples, padded: (tokens, 0.1))
    assert recognizer.transcribe(bytes(2 * 2 * asr.RATE)).text == "today?"


class _Scripted:
    """A decoder that says one sequence, and is stopped after so many tokens each time."""

    def __init__(self, sequence: list[int]) -> None:
        self._sequence = sequence
        self.stops: list[int] = []

    def decode(self, encoded: object, most: int) -> tuple[list[int], float]:
        self.stops.append(most)
        return self._sequence[:most], 0.1


def _scripted(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch, sequence: list[int]
) -> _Scripted:
    decoder = _Scripted(sequence)
    monkeypatch.setattr(recognizer, "_decode", decoder.decode)
    return decoder


def _segment(recognizer: asr.Recognizer, text: str, start_s: float, end_s: float) -> list[int]:
    words = [recognizer._token("\u0120" + word) for word in text.split()]
    start, end = (
        recognizer._first_timestamp + round(at_s / asr.TIMESTAMP_S) for at_s in (start_s, end_s)
    )
    return [start, *words, end]


@pytest.mark.local
def test_a_segment_that_nobody_says_so_fast_and_that_is_said_again_is_said_once(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "can you tell me how it is made"
    loop = [token for i in range(9) for token in _segment(recognizer, said, i, i + 1)]
    decoder = _scripted(recognizer, monkeypatch, loop)

    assert recognizer.transcribe(bytes(2 * 2 * asr.RATE)).text == said
    assert decoder.stops == [asr.LIKELY_TOKENS + 2 * asr.LIKELY_TOKENS_PER_S]


@pytest.mark.local
def test_all_is_kept_of_what_is_said_again_where_the_audio_ends(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ("come here at once", "and bring it with you")
    loop = [
        token
        for i in range(6)
        for token in _segment(recognizer, said[i % 2], 1.5 * i, 1.5 * i + 1.5)
    ]
    _scripted(recognizer, monkeypatch, loop)

    assert recognizer.transcribe(bytes(round(3.5 * 2 * asr.RATE))).text == " ".join(said)


@pytest.mark.local
def test_what_somebody_has_time_to_say_twice_is_said_twice(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "come here at once"
    twice = [*_segment(recognizer, said, 0, 1), *_segment(recognizer, said, 1, 2)]
    decoder = _scripted(recognizer, monkeypatch, twice)

    assert recognizer.transcribe(bytes(2 * 2 * asr.RATE)).text == f"{said} {said}"
    assert len(decoder.stops) == 1


@pytest.mark.local
def test_a_decoder_that_wants_more_tokens_than_likely_gets_them(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = list(range(50, 80))  # a long word in many tokens
    decoder = _scripted(recognizer, monkeypatch, letters)

    recognizer.transcribe(bytes(2 * 2 * asr.RATE))
    likely = asr.LIKELY_TOKENS + 2 * asr.LIKELY_TOKENS_PER_S
    assert decoder.stops == [likely, asr.most_tokens(2.0, asr.SPARE_S)]


@pytest.mark.local
def test_noise_gets_no_second_decoding(
    recognizer: asr.Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = []

    def unsure(encoded: object, most: int) -> tuple[list[int], float]:
        stops.append(most)
        return list(range(50, 50 + most)), 0.6

    monkeypatch.setattr(recognizer, "_decode", unsure)
    assert recognizer.transcribe(bytes(2 * 2 * asr.RATE)).text == ""
    assert len(stops) == 1
