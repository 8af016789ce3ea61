from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.models.local.clauses import (
    FIRST_MAX_WORDS,
    MAX_WORDS,
    ClauseSplitter,
    is_abbreviation,
    speakable,
)

PIECES = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from([" ", "\n\n", "Dr.", "3.5", "$42.50", ", ", ". ", "Well", "word ", "! "]),
    ),
    max_size=60,
)


def clauses(*pieces: str) -> list[str]:
    splitter = ClauseSplitter()
    return [clause for piece in pieces for clause in splitter.push(piece)] + splitter.finish()


@given(PIECES)
def test_joined_clauses_are_the_text(pieces: list[str]) -> None:
    assert "".join(clauses(*pieces)) == "".join(pieces)


@given(PIECES)
def test_how_the_text_arrives_makes_no_difference(pieces: list[str]) -> None:
    assert clauses(*pieces) == clauses("".join(pieces)) == clauses(*"".join(pieces))


@given(PIECES)
def test_no_word_is_cut(pieces: list[str]) -> None:
    words = [word for clause in clauses(*pieces) for word in clause.split()]
    assert words == "".join(pieces).split()


@given(st.lists(st.from_regex(r"[a-z]{2,6}", fullmatch=True), min_size=1, max_size=80))
def test_clauses_without_punctuation_have_a_bounded_length(words: list[str]) -> None:
    counts = [len(clause.split()) for clause in clauses(" ".join(words))]
    assert counts[0] <= FIRST_MAX_WORDS
    assert all(count <= MAX_WORDS for count in counts)
    assert all(later <= 2 * earlier for earlier, later in pairwise(counts))


def test_first_clause_ends_at_the_first_punctuation_after_two_words() -> None:
    assert clauses("Sure, I can help, of course. What else?") == [
        "Sure, I can help, ",
        "of course. ",
        "What else?",
    ]
    assert clauses("Of course, I can do that.") == ["Of course, ", "I can do that."]


def test_first_clause_comes_before_the_sentence_is_over() -> None:
    splitter = ClauseSplitter()
    assert splitter.push("The capital of France") == []
    assert splitter.push(" is Paris") == ["The capital of France "]
    assert splitter.finish() == ["is Paris"]


@pytest.mark.parametrize(
    "unit", ["3.5 litres", "$42.50 today", "Dr. Smith", "e.g. this", "J. Bach"]
)
def test_numbers_and_abbreviations_stay_whole(unit: str) -> None:
    text = f"Of course, you asked about {unit} and I know. Good."
    assert clauses(text) == ["Of course, ", f"you asked about {unit} and I know. ", "Good."]


def test_abbreviations_do_not_take_ordinary_ends() -> None:
    assert is_abbreviation("(e.g.")
    assert is_abbreviation("12.")
    assert not is_abbreviation("No.")
    assert not is_abbreviation("cat.")
    assert not is_abbreviation("wait...")


def test_closing_quote_belongs_to_the_sentence() -> None:
    assert clauses('He said "yes." Then he left.') == ['He said "yes." ', "Then he left."]


def test_splitter_begins_anew_after_finish() -> None:
    splitter = ClauseSplitter()
    splitter.push("One two three four five six")
    splitter.finish()
    assert splitter.push("One two, three") == ["One two, "]


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("**Bold** and `code`, _really_.", "Bold and code, really."),
        ("# Title\n- one\n- two", "Title one two"),
        ("See [the site](https://example.org/a_b).", "See the site."),
        ("site](https://example.org) is good", "site is good"),
        ("```python\ndone\n```", "done"),
        ("Hello 😊👩\u200d👧 there! 🇫🇷", "Hello there!"),
        ("3 * 4 is snake_case", "3 times 4 is snake case"),
        ("It costs $42.50, Dr. Smith.", "It costs $42.50, Dr. Smith."),
        ("😊", ""),
    ],
)
def test_speakable_drops_what_is_not_speech(written: str, spoken: str) -> None:
    assert speakable(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("23°C (74 °F)", "23 degrees Celsius (74 degrees Fahrenheit)"),
        ("a 45° turn", "a 45 degrees turn"),
        ("at 10:30", "at 10 30"),
        ("about ~20 people", "about 20 people"),
        ("1 day = 24 hours", "1 day equals 24 hours"),
        ("10km and 5 kg", "10 kilometers and 5 kilograms"),
        ("3cm", "3 cm"),
        ("the 2nd, the 1990s, 5pm, 3x", "the 2nd, the 1990s, 5pm, 3x"),
    ],
)
def test_no_number_is_lost_to_the_sign_beside_it(written: str, spoken: str) -> None:
    assert speakable(written) == spoken


@given(st.text())
def test_speakable_text_stays_as_it_is(text: str) -> None:
    words = "".join(character for character in text if character.isalpha()).strip()
    assert speakable(words) == words
