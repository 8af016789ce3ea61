"""Speech as a test needs it: at 16 kHz, and told by its words alone."""

from typing import Any

import msgspec

from omniduplex.audio.resample import StreamResampler
from omniduplex.models.local.messages import SpeechGrew, TurnEnded


def at_16k(pcm: bytes, rate: int) -> bytes:
    return StreamResampler(rate, 16_000).process(pcm, last=True)


def told_of_words(heard: Any) -> Any:
    """What an ear told, without how it sounded."""
    if isinstance(heard, TurnEnded):
        return msgspec.structs.replace(heard, speech=None)
    if isinstance(heard, SpeechGrew):
        return msgspec.structs.replace(heard, brightness_db=None)
    return heard
