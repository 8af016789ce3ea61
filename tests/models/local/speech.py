"""Speech as a test needs it: at 16 kHz, and compared word by word."""

import re
from typing import Any

import msgspec

from omniduplex.audio.resample import StreamResampler
from omniduplex.models.local.messages import SpeechGrew, TurnEnded


def at_16k(pcm: bytes, rate: int) -> bytes:
    return StreamResampler(rate, 16_000).process(pcm, last=True)


def word_error_rate(said: str, heard: str) -> float:
    """Edits that turn one word list into the other, per word said."""
    wanted, got = (re.findall(r"[a-z0-9']+", text.lower()) for text in (said, heard))
    row = list(range(len(got) + 1))
    for i, word in enumerate(wanted, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(got, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1] / len(wanted)


def told_of_words(heard: Any) -> Any:
    """What an ear told, without how it sounded."""
    if isinstance(heard, TurnEnded):
        return msgspec.structs.replace(heard, speech=None)
    if isinstance(heard, SpeechGrew):
        return msgspec.structs.replace(heard, brightness_db=None)
    return heard
