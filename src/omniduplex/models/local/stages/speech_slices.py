"""Cuts spoken clauses into slices of audio, each with the words that are said in it."""

import re

from omniduplex.audio.pcm import byte_count

FIRST_SLICE_MS = 100
SLICE_MS = 200

# A word with the white space around it, so that the words joined are the text, exactly.
_WORD = re.compile(r"\s*\S+\s*|\s+")


def slice_speech(pcm: bytes, rate: int, text: str, first_ms: int) -> list[tuple[bytes, str]]:
    """Cut a clause's int16 audio into slices of 200 ms at most, the first of `first_ms`.

    Time is shared among the words by their length; a word goes with the slice that holds its
    middle. Texts joined are `text`, audio joined is `pcm`; without audio there is no slice.
    """
    ends = list(range(byte_count(first_ms, rate), len(pcm), byte_count(SLICE_MS, rate)))
    ends.append(len(pcm))
    slices = []
    words = _place_words(text, len(pcm))
    start = 0
    for end in ends if pcm else ():
        spoken = ""
        while words and (words[0][0] < end or end == len(pcm)):
            spoken += words.pop(0)[1]
        slices.append((pcm[start:end], spoken))
        start = end
    return slices


def _place_words(text: str, length: int) -> list[tuple[float, str]]:
    """Where the middle of each word falls in audio of `length` bytes."""
    placed, start = [], 0
    for word in _WORD.findall(text):
        placed.append(((start + len(word) / 2) / len(text) * length, word))
        start += len(word)
    return placed
