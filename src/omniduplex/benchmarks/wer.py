"""Word error rate: how far heard words are from those that were said."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Apostrophes stay inside a word: "don't" is one.
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)*")
# fmt: off
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)
# fmt: on
_TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_NUMBERS = {word: number for number, word in enumerate(_SMALL)} | _TENS


def normalise_words(text: str) -> list[str]:
    """Lower-case words without punctuation, numbers below a hundred as digits.

    "Twenty-five" and "twenty five" become "25", as a recogniser may write them.
    """
    words: list[str] = []
    tens = 0
    for word in _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")):
        number = _NUMBERS.get(word)
        if tens and number is not None and 0 < number < 10:
            words[-1] = str(tens + number)
        else:
            words.append(word if number is None else str(number))
        tens = _TENS.get(word, 0)
    return words


def word_error_rate(said: str, heard: str) -> float:
    """Fewest words to insert, delete or replace, per word said.

    It exceeds 1 when more is heard than was said. Raises ValueError when nothing was said.
    """
    return total_error_rate([(said, heard)])


def total_error_rate(pairs: Iterable[tuple[str, str]]) -> float:
    """The word error rate over pairs of said and heard, each word said counting the same."""
    errors = words = 0
    for said, heard in pairs:
        wanted = normalise_words(said)
        errors += _edits(wanted, normalise_words(heard))
        words += len(wanted)
    if not words:
        raise ValueError("no word was said, so none can be wrong")
    return errors / words


def _edits(wanted: list[str], got: list[str]) -> int:
    row = list(range(len(got) + 1))
    for line, word in enumerate(wanted, 1):
        diagonal, row[0] = row[0], line
        for column, other in enumerate(got, 1):
            replaced = diagonal + (word != other)
            diagonal = row[column]
            row[column] = min(replaced, row[column] + 1, row[column - 1] + 1)
    return row[-1]
