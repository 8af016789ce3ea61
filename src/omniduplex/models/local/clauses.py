"""Cuts a growing text into clauses worth speaking, and cleans a clause of what is not speech."""

import re

FIRST_MIN_WORDS = 2
# The first clause is short so that the voice can start, and each of the next may be twice as long:
# it has to be written and spoken while the one before it plays.
FIRST_MAX_WORDS = 4
MAX_WORDS = 20
MIN_CLAUSE_WORDS = 3  # "Well, " alone is no later clause

SENTENCE_END = ".!?…。！？"  # noqa: RUF001 - the wide forms are what such text uses
CLAUSE_END = ",;:–—，、；："  # noqa: RUF001 - as above
CLOSERS = "\"'”’)]*_"  # noqa: RUF001 - a closing quote
ABBREVIATIONS = frozenset(
    {"dr", "mr", "mrs", "ms", "prof", "st", "sr", "jr", "vs", "etc", "e.g", "i.e", "a.m", "p.m"}
    | {"approx", "dept", "fig", "inc", "ltd", "co", "u.s", "u.k"}
    | {"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"}
)

# A word counts as whole once a white space follows; further white space leads the next word.
_WORD = re.compile(r"\s*\S+\s")
_FENCE = re.compile(r"^\s*```.*$", re.MULTILINE)
_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_LINE_MARK = re.compile(r"^\s*(?:[-+*•]|#+|>+|\d+[.)])\s+", re.MULTILINE)
_TIMES = re.compile(r"(?<=\d)\s*[*×]\s*(?=\d)")  # noqa: RUF001 - the real multiplication sign
# Signs that the voice's lexicon is silent about, some of them with the number beside them.
_SIGNS = (
    (re.compile(r"(?<=\d)\s?°\s?C\b"), " degrees Celsius"),
    (re.compile(r"(?<=\d)\s?°\s?F\b"), " degrees Fahrenheit"),
    (re.compile(r"(?<=\d)\s?°"), " degrees"),
    (re.compile(r"(?<=\d):(?=\d)"), " "),
    (re.compile(r"(?<!~)~(?=\d)"), ""),
    (re.compile(r"(?<=\w) = (?=\w)"), " equals "),
    (re.compile(r"(?<=\d)\s?km\b"), " kilometers"),
    (re.compile(r"(?<=\d)\s?kg\b"), " kilograms"),
    # "10km", but not "2nd", "1990s", "5pm", "3x": those it knows.
    (re.compile(r"(?<=\d)(?=[a-zA-Z])(?!(?:st|nd|rd|th|s|am|pm|x)\b)"), " "),
)
_JOINER = re.compile(r"(?<=\w)_+(?=\w)")
_MARKUP = re.compile(r"[*_`|\\\[\]]+|~~|!(?=\[)")
_PICTURES = re.compile(
    "[\U0001f000-\U0001faff\U00002600-\U000027bf\U00002b00-\U00002bff"
    "\U0001f1e6-\U0001f1ff\ufe0e\ufe0f\u200d\u20e3\U000e0020-\U000e007f]+"
)


class ClauseSplitter:
    """Takes an answer piece by piece and gives its clauses; joined they are the text, exactly.

    Clauses end at punctuation, or where there is none after 4, 8, 16 and then 20 words. No cut
    falls inside a word, a number or an abbreviation.
    """

    def __init__(self) -> None:
        self._pending = ""  # whole words of the clause being gathered, with their white space
        self._words = 0
        self._tail = ""  # the last word, which may still grow
        self._cuts = 0

    def push(self, text: str) -> list[str]:
        """Add text; return the clauses that are complete now."""
        self._tail += text
        clauses = []
        end = 0
        for match in _WORD.finditer(self._tail):
            end = match.end()
            self._pending += match.group()
            self._words += 1
            if self._is_complete(match.group().strip()):
                clauses.append(self._cut())
        self._tail = self._tail[end:]
        return clauses

    def finish(self) -> list[str]:
        """End the text; return the rest as one clause, if any, and begin anew."""
        self._pending += self._tail
        self._tail = ""
        rest = self._cut()
        self._cuts = 0
        return [rest] if rest else []

    def _cut(self) -> str:
        clause, self._pending, self._words = self._pending, "", 0
        self._cuts += 1
        return clause

    def _is_complete(self, word: str) -> bool:
        if self._words >= min(FIRST_MAX_WORDS << self._cuts, MAX_WORDS):
            return not is_abbreviation(word)
        is_first = self._cuts == 0
        if ends_sentence(word):
            return self._words >= FIRST_MIN_WORDS or not is_first
        least = FIRST_MIN_WORDS if is_first else MIN_CLAUSE_WORDS
        return self._words >= least and word.rstrip(CLOSERS)[-1:] in tuple(CLAUSE_END)


def ends_sentence(word: str) -> bool:
    """Tell whether a word, complete with its punctuation, ends a sentence."""
    return word.rstrip(CLOSERS)[-1:] in tuple(SENTENCE_END) and not is_abbreviation(word)


def is_abbreviation(word: str) -> bool:
    """Tell whether the dot behind a word belongs to it: "Dr.", "e.g.", "J.", "1." of a list."""
    bare = word.strip(CLOSERS + "([")
    if not bare.endswith(".") or bare.endswith(".."):
        return False
    stem = bare[:-1]
    return (
        stem.lower() in ABBREVIATIONS
        or (len(stem) == 1 and stem.isalpha() and stem != "I")
        or (len(stem) <= 2 and stem.isdecimal())
    )


def speakable(text: str) -> str:
    """Drop Markdown marks, link targets and pictures, spell out signs, and fold white space."""
    text = _FENCE.sub(" ", text)
    text = _LINK_TARGET.sub("]", text)
    text = _LINE_MARK.sub("", text)
    text = _TIMES.sub(" times ", text)
    for pattern, said in _SIGNS:
        text = pattern.sub(said, text)
    text = _JOINER.sub(" ", text)
    text = _MARKUP.sub("", text)
    return " ".join(_PICTURES.sub(" ", text).split())
