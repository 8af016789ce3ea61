"""Whether an append holds speech, before the model's ear has a say."""

from __future__ import annotations

from omniduplex.audio.pcm import rms
from omniduplex.protocol.duplex import AppendAudio, VadHint

SPEECH_PROBABILITY = 0.5
NO_HINT = VadHint()


def is_speech(command: AppendAudio, pcm: bytes, silence_rms: float) -> bool:
    """The client's own verdict first, then the level (wire contract, section 1.1)."""
    declared = _declared(command)
    if declared is not None:
        return declared
    floor = command.overlap_silence_rms
    if floor is None and command.vad is not None:
        floor = command.vad.silence_rms
    return rms(pcm) >= (silence_rms if floor is None else floor)


def _declared(command: AppendAudio) -> bool | None:
    """What the client says, a "no" before a "yes", and that before a probability."""
    vad = command.vad or NO_HINT
    flags = (command.is_speech, vad.is_speech)
    if False in flags:
        return False
    if True in flags:
        return True
    for probability in (vad.speech_probability, vad.probability, command.speech_probability):
        if probability is not None:
            return probability >= SPEECH_PROBABILITY
    return None
