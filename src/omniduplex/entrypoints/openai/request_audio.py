"""The sound in a request's body, checked and decoded."""

from __future__ import annotations

import io
import wave

from omniduplex.audio.pcm import SAMPLE_BYTES
from omniduplex.audio.wav import read_wav_file
from omniduplex.engine.turns import TurnAudio
from omniduplex.entrypoints.openai.turn_http import RequestRefused
from omniduplex.entrypoints.openai.turn_sound import PCM_RATE_HZ

# Slower than telephones or faster than studios is a broken header.
RATES_HZ = range(4_000, 192_001)
MAX_AUDIO_S = 1500


def wav_audio(data: bytes, param: str) -> TurnAudio:
    """The sound in a WAV file; takes a while for a long one.

    Raises:
        RequestRefused: it is none of integer PCM, or too long.
    """
    try:
        pcm, rate = read_wav_file(io.BytesIO(data))
    except (wave.Error, EOFError) as error:
        message = f"This is no WAV of integer PCM: {error or 'it is cut short'}."
        raise RequestRefused(message, "invalid_audio", param=param) from error
    if rate not in RATES_HZ:
        raise RequestRefused(f"A rate of {rate} Hz is not taken.", "invalid_audio", param=param)
    return _not_too_long(TurnAudio(pcm, rate), param)


def pcm_audio(data: bytes, param: str) -> TurnAudio:
    """Headerless PCM16 at 24 kHz.

    Raises:
        RequestRefused: it ends inside a sample, or is too long.
    """
    if len(data) % SAMPLE_BYTES:
        raise RequestRefused("The PCM ends inside a sample.", "invalid_audio", param=param)
    return _not_too_long(TurnAudio(data, PCM_RATE_HZ), param)


def _not_too_long(audio: TurnAudio, param: str) -> TurnAudio:
    if len(audio.pcm) > MAX_AUDIO_S * audio.sample_rate_hz * SAMPLE_BYTES:
        message = f"Audio may last {MAX_AUDIO_S} s."
        raise RequestRefused(message, "audio_too_long", param=param)
    return audio
