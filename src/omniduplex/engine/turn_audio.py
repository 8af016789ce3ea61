"""The sound in a turn request, at the rate its model hears at."""

from __future__ import annotations

from msgspec.structs import replace

from omniduplex.audio.resample import StreamResampler
from omniduplex.engine.turns import (
    AnswerRequest,
    SpeechRequest,
    TranscriptionRequest,
    TurnAudio,
    TurnMessage,
    TurnRequest,
)


def at_rate(request: TurnRequest, rate_hz: int) -> TurnRequest:
    """The request with all its sound at `rate_hz`; long sound takes a while.

    Raises:
        ValueError: some PCM ends inside a sample.
    """
    match request:
        case AnswerRequest():
            messages = tuple(_message_at(message, rate_hz) for message in request.messages)
            return replace(request, messages=messages)
        case TranscriptionRequest():
            return replace(request, audio=_audio_at(request.audio, rate_hz))
        case SpeechRequest():
            return request


def _message_at(message: TurnMessage, rate_hz: int) -> TurnMessage:
    content = tuple(
        part if isinstance(part, str) else _audio_at(part, rate_hz) for part in message.content
    )
    return replace(message, content=content)


def _audio_at(audio: TurnAudio, rate_hz: int) -> TurnAudio:
    resampler = StreamResampler(audio.sample_rate_hz, rate_hz)
    return TurnAudio(resampler.process(audio.pcm, last=True), rate_hz)
