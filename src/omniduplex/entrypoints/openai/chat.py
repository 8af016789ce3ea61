"""`POST /v1/chat/completions`: one turn of a conversation, written or spoken."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from omniduplex.engine.async_omni_engine import StageFailed
from omniduplex.engine.turns import TurnChunk, TurnUsage
from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.openai.chat_objects import (
    AnswerMessage,
    AudioMetadata,
    ChatAudio,
    ChatCompletion,
    ChatCompletionChunk,
    Choice,
    ChunkChoice,
    Delta,
    tool_call_object,
    usage_object,
)
from omniduplex.entrypoints.openai.chat_request import (
    ChatCompletionRequest,
    answer_request,
    sound_format,
)
from omniduplex.entrypoints.openai.description import JSON, Content, Operation
from omniduplex.entrypoints.openai.errors import error_body
from omniduplex.entrypoints.openai.spoken_answers import SpokenAnswers
from omniduplex.entrypoints.openai.turn_http import (
    TurnStream,
    check_model,
    read_json,
    turn_endpoint,
    while_connected,
)
from omniduplex.entrypoints.openai.turn_sound import TurnSound, frame_count

CHAT_PATH = "/v1/chat/completions"
_EVENT = {
    "description": "One server-sent event of the stream.",
    "type": "object",
    "properties": {"data": {"type": "string", "description": "A ChatCompletionChunk, or [DONE]."}},
    "required": ["data"],
}
CHAT_OPERATION = Operation(
    "createChatCompletion",
    "post",
    CHAT_PATH,
    "One turn of a conversation, written or spoken.",
    {200: (Content(JSON, (ChatCompletion,)), Content("text/event-stream", _EVENT))},
    Content(JSON, (ChatCompletionRequest,)),
    (ChatCompletionChunk,),
)


def random_id() -> str:
    """Return 32 hexadecimal digits."""
    return uuid.uuid4().hex


class CompletionWriter:
    """Renders the chunks of one turn; `sound` is None for an answer in text."""

    def __init__(
        self, model: str, created: int, new_id: Callable[[], str], sound: TurnSound | None
    ) -> None:
        self._id = f"chatcmpl-{new_id()}"
        self.audio_id = f"audio_{new_id()}"
        self._model = model
        self._created = created
        self._sound = sound
        self._texts: list[str] = []
        self._calls = 0
        self._began = False

    @property
    def text(self) -> str:
        """All words so far."""
        return "".join(self._texts)

    def chunk(self, chunk: TurnChunk, expires_at: int) -> ChatCompletionChunk | None:
        """What a chunk adds to the answer; None when that is nothing."""
        pcm = self._sound.take(chunk) if self._sound else b""
        self._texts.append(chunk.text)
        first = self._calls
        self._calls += len(chunk.tool_calls)
        calls = tuple(
            tool_call_object(call, index) for index, call in enumerate(chunk.tool_calls, first)
        )
        if not (pcm or chunk.text or calls or chunk.finished):
            return None
        delta = Delta(
            role=UNSET if self._began else "assistant",
            content=chunk.text if chunk.text and not self._sound else UNSET,
            audio=self._audio_delta(self._sound, chunk, pcm, expires_at) if self._sound else UNSET,
            tool_calls=calls or UNSET,
        )
        self._began = True
        choice = ChunkChoice(
            delta=delta,
            finish_reason=chunk.finish_reason,
            audio_metadata=self._metadata(pcm),
        )
        return self._chunk_object((choice,))

    def usage_chunk(self, usage: TurnUsage) -> ChatCompletionChunk:
        """The chunk that tells the usage."""
        return self._chunk_object((), usage)

    def whole(self, chunks: Sequence[TurnChunk], expires_at: int) -> ChatCompletion:
        """The whole answer."""
        pcm = b"".join(self._sound.take(chunk) for chunk in chunks) if self._sound else b""
        self._texts = [chunk.text for chunk in chunks]
        calls = tuple(tool_call_object(call) for chunk in chunks for call in chunk.tool_calls)
        audio: ChatAudio | UnsetType = UNSET
        if self._sound and pcm:
            audio = ChatAudio(
                id=self.audio_id,
                data=self._sound.whole(pcm),
                transcript=self.text,
                expires_at=expires_at,
            )
        message = AnswerMessage(
            content=None if audio else self.text or None,
            audio=audio,
            tool_calls=calls or UNSET,
        )
        end = chunks[-1]
        choice = Choice(
            message=message,
            finish_reason=end.finish_reason or "stop",
            audio_metadata=self._metadata(pcm),
        )
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=(choice,),
            usage=usage_object(end.usage) if end.usage else UNSET,
        )

    def _audio_delta(
        self, sound: TurnSound, chunk: TurnChunk, pcm: bytes, expires_at: int
    ) -> ChatAudio | UnsetType:
        if not (pcm or chunk.text or (chunk.finished and sound.rate_hz)):
            return UNSET
        return ChatAudio(
            id=self.audio_id,
            data=sound.streamed(pcm) if pcm else UNSET,
            transcript=chunk.text or UNSET,
            expires_at=expires_at if chunk.finished else UNSET,
        )

    def _metadata(self, pcm: bytes) -> AudioMetadata | UnsetType:
        if not self._sound or not pcm:
            return UNSET
        return AudioMetadata(
            format="wav" if self._sound.format == "wav" else "pcm",
            sample_rate_hz=self._sound.rate_hz,
            frame_count=frame_count(pcm),
        )

    def _chunk_object(
        self, choices: tuple[ChunkChoice, ...], usage: TurnUsage | None = None
    ) -> ChatCompletionChunk:
        return ChatCompletionChunk(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=choices,
            usage=usage_object(usage) if usage else UNSET,
        )


class ChatService:
    """Answers chat completions by turns of an engine."""

    def __init__(
        self,
        omni: AsyncOmniBase[Any],
        model: str,
        *,
        new_id: Callable[[], str] = random_id,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._omni = omni
        self._model = model
        self._new_id = new_id
        self._clock = clock
        self._spoken = SpokenAnswers(clock)

    def routes(self) -> Sequence[BaseRoute]:
        """The one route."""
        return (Route(CHAT_PATH, turn_endpoint(self._complete), methods=["POST"]),)

    async def _complete(self, request: Request) -> Response:
        asked = await read_json(request, ChatCompletionRequest)
        check_model(asked.model, self._model)
        wanted = sound_format(asked)
        turn = await asyncio.to_thread(answer_request, asked, self._spoken.recall)
        writer = CompletionWriter(
            self._model, int(self._clock()), self._new_id, TurnSound(wanted) if wanted else None
        )
        chunks = self._omni.generate(turn)
        if not asked.stream:
            return await while_connected(request, chunks, self._whole(chunks, writer))
        # What can be refused is refused before the stream begins, with a status of its own.
        first = await while_connected(request, chunks, anext(chunks))
        options = asked.stream_options
        body = self._stream(first, chunks, writer, bool(options and options.include_usage))
        return TurnStream(chunks, body, "text/event-stream")

    async def _whole(
        self, chunks: AsyncGenerator[TurnChunk, None], writer: CompletionWriter
    ) -> Response:
        expires_at = self._spoken.expiry()
        taken = [chunk async for chunk in chunks]
        completion = writer.whole(taken, expires_at)
        self._spoken.remember(writer.audio_id, writer.text, expires_at)
        return Response(msgspec.json.encode(completion), media_type=JSON)

    async def _stream(
        self,
        first: TurnChunk,
        chunks: AsyncGenerator[TurnChunk, None],
        writer: CompletionWriter,
        include_usage: bool,
    ) -> AsyncGenerator[bytes, None]:
        expires_at = self._spoken.expiry()
        try:
            async for chunk in _from_first(first, chunks):
                if (rendered := writer.chunk(chunk, expires_at)) is not None:
                    yield _event(msgspec.json.encode(rendered))
                if chunk.finished:
                    self._spoken.remember(writer.audio_id, writer.text, expires_at)
                    if include_usage and chunk.usage:
                        yield _event(msgspec.json.encode(writer.usage_chunk(chunk.usage)))
        except StageFailed as error:
            yield _event(error_body(500, str(error), "stage_failed"))
        yield _event(b"[DONE]")


async def _from_first(
    first: TurnChunk, chunks: AsyncGenerator[TurnChunk, None]
) -> AsyncGenerator[TurnChunk, None]:
    yield first
    async for chunk in chunks:
        yield chunk


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"
