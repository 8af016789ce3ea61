"""Whether an append holds speech, before the model's ear has a say."""

from __future__ import annotations

from omniduplex.audio.pcm import rms
from omniduplex.protocol.duplex import AppendAudio

SPEECH_PROBABILITY = 0.5


def is_speech(command: AppendAudio, pcm: bytes, silence_rms: float) -> bool:
    """The client's own verdict first, then the level (wire contract, section 1.1)."""
    if command.is_speech is not None:
        return command.is_speech
    if command.vad is not None and command.vad.is_speech is not None:
        return command.vad.is_speech
    if command.speech_probability is not None:
        return command.speech_probability >= SPEECH_PROBABILITY
    floor = command.overlap_silence_rms
    return rms(pcm) >= (silence_rms if floor is None else floor)
