"""`POST /v1/audio/transcriptions`: the words of a recording."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from omniduplex.audio.pcm import duration_ms
from omniduplex.engine.turns import TranscriptionRequest, TurnAudio, TurnChunk
from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.openai.description import JSON, Content, Operation, Schema
from omniduplex.entrypoints.openai.request_audio import wav_audio
from omniduplex.entrypoints.openai.turn_http import (
    RequestRefused,
    check_model,
    turn_endpoint,
    while_connected,
)

TRANSCRIPTIONS_PATH = "/v1/audio/transcriptions"
FORMATS = ("json", "text", "verbose_json")
# Fields that no stage follows, with the values that ask for nothing.
NEUTRAL: dict[str, tuple[str, ...]] = {
    "stream": ("false", "False"),
    "temperature": ("0", "0.0"),
    "include[]": (),
    "timestamp_granularities[]": ("segment",),
    "known_speaker_names[]": (),
}


class DurationUsage(msgspec.Struct, frozen=True, tag="duration"):
    """What a transcription is counted by."""

    seconds: float


class Transcription(msgspec.Struct, frozen=True, kw_only=True):
    """The answer in `json`."""

    text: str
    usage: DurationUsage


class TranscriptionVerbose(msgspec.Struct, frozen=True, kw_only=True):
    """The answer in `verbose_json`; `duration` in seconds, the language as ISO 639-1."""

    task: Literal["transcribe"] = "transcribe"
    language: str
    duration: float
    text: str
    usage: DurationUsage


_FORM: Schema = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "A WAV of integer PCM."},
        "model": {"type": "string"},
        "language": {"type": "string", "description": "ISO 639-1."},
        "response_format": {"type": "string", "enum": [*FORMATS], "default": FORMATS[0]},
    },
    "required": ["file", "model"],
}
_WORDS = (TranscriptionVerbose, Transcription)
TRANSCRIPTION_OPERATION = Operation(
    "createTranscription",
    "post",
    TRANSCRIPTIONS_PATH,
    "The words of a recording.",
    {200: (Content(JSON, _WORDS), Content("text/plain", {"type": "string"}))},
    Content("multipart/form-data", _FORM),
)


class TranscriptionService:
    """Recognises recordings by turns of an engine."""

    def __init__(self, omni: AsyncOmniBase[Any], model: str) -> None:
        self._omni = omni
        self._model = model

    def routes(self) -> Sequence[BaseRoute]:
        """The one route."""
        return (Route(TRANSCRIPTIONS_PATH, turn_endpoint(self._transcribe), methods=["POST"]),)

    async def _transcribe(self, request: Request) -> Response:
        async with request.form(max_files=1) as form:
            check_model(_text(form, "model"), self._model)
            wanted = _format(form)
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise RequestRefused(
                    "There is no file.", "missing_required_parameter", param="file"
                )
            data = await upload.read()
            language = _text(form, "language", "") or None
        audio = await asyncio.to_thread(wav_audio, data, "file")
        turn = TranscriptionRequest(audio=audio, language=language)
        chunks = self._omni.generate(turn)
        words = await while_connected(request, chunks, _words(chunks))
        known = self._omni.turn_features.languages
        return _render(wanted, words, audio, language or (known[0] if known else "und"))


async def _words(chunks: AsyncGenerator[TurnChunk, None]) -> str:
    return "".join([chunk.text async for chunk in chunks])


def _text(form: FormData, name: str, default: str | None = None) -> str:
    value = form.get(name, default)
    if not isinstance(value, str):
        raise RequestRefused(f"There is no {name}.", "missing_required_parameter", param=name)
    return value


def _format(form: FormData) -> str:
    for name, neutral in NEUTRAL.items():
        for value in form.getlist(name):
            if value not in neutral:
                message = f"{name} {value!r} is not supported here."
                raise RequestRefused(message, "unsupported_parameter", param=name)
    wanted = _text(form, "response_format", "json")
    if wanted not in FORMATS:
        message = f"Transcriptions come as {', '.join(FORMATS)}, not as {wanted!r}."
        raise RequestRefused(message, "unsupported_format", param="response_format")
    return wanted


def _render(wanted: str, words: str, audio: TurnAudio, language: str) -> Response:
    seconds = round(duration_ms(len(audio.pcm), audio.sample_rate_hz) / 1000, 3)
    usage = DurationUsage(seconds)
    if wanted == "text":
        return PlainTextResponse(f"{words}\n")
    answer: msgspec.Struct = Transcription(text=words, usage=usage)
    if wanted == "verbose_json":
        answer = TranscriptionVerbose(language=language, duration=seconds, text=words, usage=usage)
    return Response(msgspec.json.encode(answer), media_type=JSON)
