"""`POST /v1/audio/speech`: a text, spoken; the body grows while it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from omniduplex.engine.turns import SpeechRequest, TurnChunk
from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.openai.chat_request import VoiceId, voice_name
from omniduplex.entrypoints.openai.description import JSON, Content, Operation
from omniduplex.entrypoints.openai.turn_http import (
    RequestRefused,
    TurnStream,
    check_model,
    read_json,
    turn_endpoint,
    while_connected,
)
from omniduplex.entrypoints.openai.turn_sound import SoundFormat, TurnSound
from omniduplex.protocol.duplex import MAX_SPEED, MIN_SPEED

SPEECH_PATH = "/v1/audio/speech"
# The API's own limit.
MAX_CHARACTERS = 4096
FORMATS: dict[str, tuple[SoundFormat, str]] = {
    "wav": ("wav", "audio/wav"),
    "pcm": ("pcm16", "audio/pcm"),
}


class SpeechBody(msgspec.Struct, frozen=True, kw_only=True):
    """What is understood of a request; a WAV comes where none asks for another format."""

    model: str
    input: Annotated[str, Meta(min_length=1, max_length=MAX_CHARACTERS)]
    voice: str | VoiceId
    response_format: str = "wav"
    speed: Annotated[float, Meta(ge=MIN_SPEED, le=MAX_SPEED)] = 1.0
    instructions: str | None = None
    stream_format: str | None = None


SPEECH_OPERATION = Operation(
    "createSpeech",
    "post",
    SPEECH_PATH,
    "A text, spoken; the body grows while it is.",
    {200: tuple(Content(media_type, {}) for _, media_type in FORMATS.values())},
    Content(JSON, (SpeechBody,)),
)


class SpeechService:
    """Speaks texts by turns of an engine."""

    def __init__(self, omni: AsyncOmniBase[Any], model: str) -> None:
        self._omni = omni
        self._model = model

    def routes(self) -> Sequence[BaseRoute]:
        """The one route."""
        return (Route(SPEECH_PATH, turn_endpoint(self._speak), methods=["POST"]),)

    async def _speak(self, request: Request) -> Response:
        asked = await read_json(request, SpeechBody)
        check_model(asked.model, self._model)
        sound_format, media_type = _format(asked)
        if asked.speed != 1.0 and not self._omni.turn_features.supports_speed:
            raise _unsupported("speed")
        sound = TurnSound(sound_format)
        turn = SpeechRequest(text=asked.input, voice=voice_name(asked.voice), speed=asked.speed)
        chunks = self._omni.generate(turn)
        first = await while_connected(request, chunks, _first_sound(chunks, sound))
        return TurnStream(chunks, _sounds(first, chunks, sound), media_type)


async def _first_sound(chunks: AsyncGenerator[TurnChunk, None], sound: TurnSound) -> bytes:
    """Wait for the first sound, for until then an error has a status of its own."""
    async for chunk in chunks:
        if pcm := sound.take(chunk):
            return sound.streamed(pcm)
    raise RequestRefused("Nothing in this text has a sound.", "invalid_value", param="input")


async def _sounds(
    first: bytes, chunks: AsyncGenerator[TurnChunk, None], sound: TurnSound
) -> AsyncGenerator[bytes, None]:
    yield first
    async for chunk in chunks:
        if pcm := sound.take(chunk):
            yield sound.streamed(pcm)


def _format(asked: SpeechBody) -> tuple[SoundFormat, str]:
    """The format wanted.

    Raises:
        RequestRefused: it is not there, or something else is wanted that is not.
    """
    if asked.response_format not in FORMATS:
        message = f"Speech comes as wav or pcm, not as {asked.response_format!r}."
        raise RequestRefused(message, "unsupported_format", param="response_format")
    for param, is_neutral in (
        ("instructions", not asked.instructions),
        ("stream_format", asked.stream_format in (None, "audio")),
    ):
        if not is_neutral:
            raise _unsupported(param)
    return FORMATS[asked.response_format]


def _unsupported(param: str) -> RequestRefused:
    return RequestRefused(f"{param} is not supported here.", "unsupported_parameter", param=param)
