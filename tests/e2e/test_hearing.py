from __future__ import annotations

import pytest
from tests.e2e.hearing import begun, may_be_spoken, understood, way

RATE_HZ = 8000


@pytest.mark.parametrize(
    ("heard", "is_understood"),
    [
        ("what is the capital of france", True),
        ("What is a capitol of France?", True),
        ("What is a capital?", False),
        ("How many days are there in a week?", False),
        ("", False),
    ],
)
def test_a_sentence_of_six_words_may_lose_two(heard: str, *, is_understood: bool) -> None:
    assert understood("What is the capital of France?", heard) == is_understood


@pytest.mark.parametrize(
    ("words", "seconds", "may_be"),
    [
        ("Hello there, how are you?", 1.5, True),
        ("It was in 1945.", 2.5, True),
        ("Hello there, how are you?", 0.0, False),
        ("Hello there, how are you?", 30.0, False),
        ("...", 0.0, True),
    ],
)
def test_speech_takes_its_time(words: str, seconds: float, *, may_be: bool) -> None:
    assert may_be_spoken(words, bytes(2 * int(RATE_HZ * seconds)), RATE_HZ) == may_be


def test_a_step_that_was_taken_twice_counts_where_it_came_last() -> None:
    assert way(["start", "end", "start", "noise", "end", "answer"], {"start", "end", "answer"}) == [
        "start",
        "end",
        "answer",
    ]


@pytest.mark.parametrize(
    ("heard", "length"),
    [
        ("one two three", 3),
        ("one too three", 3),
        ("one three four", 4),
        ("one or two three", 3),
        ("one two six six six", 2),
        ("", 0),
        ("six six", 0),
    ],
)
def test_a_story_is_begun_as_far_as_most_words_are_its_own(heard: str, length: int) -> None:
    assert len(begun(["one", "two", "three", "four", "five"], heard.split())) == length
