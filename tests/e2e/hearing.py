"""What a test may ask of real models: most of what was said, and an answer of whatever words."""

from __future__ import annotations

from collections.abc import Container, Sequence

from omniduplex.audio.pcm import SAMPLE_BYTES
from omniduplex.benchmarks.wer import word_error_rate

# A recogniser writes a word or two another way on another processor: a sentence of six words may
# lose two of them. Another sentence, or half of it, has an error in every second word at least.
MAX_ERROR_RATE = 0.34
# Fast speech takes 50 ms for a letter, and the digits of a year some 400 ms each.
LEAST_S, MOST_S = 0.01, 1.0
PAUSE_S = 1.0


def understood(said: str, heard: str) -> bool:
    """Whether a real recogniser heard what was said."""
    return word_error_rate(said, heard) <= MAX_ERROR_RATE


def may_be_spoken(words: str, pcm: bytes, rate_hz: int) -> bool:
    """Whether mono PCM16 is as long as speech of these words, which a real model made up.

    Nobody knows how a recogniser would write them: what a voice makes of known words is compared
    with `understood`.
    """
    letters = sum(character.isalnum() for character in words)
    seconds = len(pcm) / SAMPLE_BYTES / rate_hz
    return letters * LEAST_S <= seconds <= letters * MOST_S + PAUSE_S


def way(events: Sequence[str], steps: Container[str]) -> list[str]:
    """Those of the events' types that are steps of a turn, each where it came last.

    A pause in mid-sentence may have ended a turn too soon: its first steps were taken twice then.
    """
    last = dict.fromkeys(reversed(events))
    return [kind for kind in reversed(last) if kind in steps]


def begun(story: list[str], heard: list[str]) -> list[str]:
    """The beginning of the story that a recogniser heard.

    It mishears a word on the way, and behind a cut in mid-sentence it may make up how it goes on:
    each word of the story counts for the beginning up to it, and each other one against it.
    """
    scores = [-told for told in range(len(story) + 1)]
    best = length = 0
    for count, word in enumerate(heard, 1):
        diagonal, scores[0] = scores[0], -count
        for told, other in enumerate(story, 1):
            met = diagonal + (1 if word == other else -1)
            diagonal = scores[told]
            scores[told] = max(met, scores[told] - 1, scores[told - 1] - 1)
            if scores[told] >= best:
                best, length = scores[told], told
    return story[:length]
