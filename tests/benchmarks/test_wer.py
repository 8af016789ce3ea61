from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.benchmarks.wer import normalise_words, total_error_rate, word_error_rate

WORDS = st.lists(st.sampled_from(("red", "green", "blue", "lamp")), max_size=8).map(" ".join)
SOME_WORDS = WORDS.filter(bool)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("What's the time?", "what's the time"),
        ("It\N{RIGHT SINGLE QUOTATION MARK}s late.", "it's late"),
        ("ten eggs", "10 eggs"),
        ("Twenty-five, please", "25 please"),
        ("sixty two", "62"),
        ("twenty ten", "20 10"),
    ],
)
def test_case_punctuation_and_ways_to_write_a_number_are_no_errors(said: str, heard: str) -> None:
    assert word_error_rate(said, heard) == 0


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("one red lamp", 0),
        ("one green lamp", 1),
        ("one lamp", 1),
        ("one very red lamp", 1),
        ("red lamp one", 2),
        ("", 3),
        ("a b c d e f", 6),
    ],
)
def test_an_error_is_a_word_replaced_lost_or_added(heard: str, errors: int) -> None:
    assert word_error_rate("one red lamp", heard) == pytest.approx(errors / 3)


def test_a_number_word_is_only_joined_to_tens() -> None:
    assert normalise_words("thirty three trees, three thirty") == ["33", "trees", "3", "30"]


def test_over_many_pairs_every_word_counts_the_same() -> None:
    pairs = [("lamp", "lamb"), ("one two three", "one two three")]
    assert total_error_rate(pairs) == 0.25


def test_of_nothing_said_nothing_can_be_wrong() -> None:
    with pytest.raises(ValueError, match="no word"):
        word_error_rate("...", "lamp")


@given(SOME_WORDS, WORDS)
def test_the_rate_lies_between_what_length_alone_costs_and_the_longer_text(
    said: str, heard: str
) -> None:
    wanted, got = len(said.split()), len(heard.split())
    assert abs(wanted - got) <= word_error_rate(said, heard) * wanted <= max(wanted, got) + 1e-9


@given(SOME_WORDS, SOME_WORDS)
def test_errors_are_the_same_both_ways(said: str, heard: str) -> None:
    there = word_error_rate(said, heard) * len(said.split())
    back = word_error_rate(heard, said) * len(heard.split())
    assert there == pytest.approx(back)
