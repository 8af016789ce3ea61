"""Whether an append holds speech, before the model's ear has a say."""

from __future__ import annotations

from omniduplex.audio.pcm import rms
from omniduplex.protocol.duplex import AppendAudio, VadHint

SPEECH_PROBABILITY = 0.5


def is_speech(command: AppendAudio, pcm: bytes, silence_rms: float) -> bool:
    """The client's own verdict first, then the level (wire contract, section 1.1)."""
    declared = _declared(command)
    if declared is not None:
        return declared
    floors = (command.overlap_silence_rms, command.vad.silence_rms if command.vad else None)
    return rms(pcm) >= next((floor for floor in floors if floor is not None), silence_rms)


def _declared(command: AppendAudio) -> bool | None:
    """What the client says, a "no" before a "yes", and that before a probability."""
    vad = command.vad or VadHint()
    flags = (command.is_speech, vad.is_speech)
    if False in flags:
        return False
    if True in flags:
        return True
    probabilities = (vad.speech_probability, vad.probability, command.speech_probability)
    given = next((value for value in probabilities if value is not None), None)
    return None if given is None else given >= SPEECH_PROBABILITY
