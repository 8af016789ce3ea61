"""What a chat completion looks like on the wire, whole and in chunks."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.engine.turns import FinishReason, TurnToolCall, TurnUsage


class AudioMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The waveform beside it, as it is after all conversions; frames are samples per channel."""

    format: Literal["wav", "pcm"]
    sample_rate_hz: int
    frame_count: int
    channels: int = 1


class FunctionCall(msgspec.Struct, frozen=True):
    """A function and the JSON text of its arguments."""

    name: str
    arguments: str


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call; only in chunks it has an index."""

    index: int | UnsetType = UNSET
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatAudio(msgspec.Struct, frozen=True, kw_only=True):
    """The sound of an answer, or the next piece of it; `expires_at` in Unix seconds."""

    id: str
    data: bytes | UnsetType = UNSET
    transcript: str | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET


class ChatUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AnswerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    audio: ChatAudio | UnsetType = UNSET
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer of a completion."""

    index: int = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: FinishReason
    audio_metadata: AudioMetadata | UnsetType = UNSET


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """A completion; `created` in Unix seconds."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: ChatUsage | UnsetType = UNSET


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What a chunk adds."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    audio: ChatAudio | UnsetType = UNSET
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer of a completion, as a chunk sees it."""

    index: int = 0
    delta: Delta
    logprobs: None = None
    finish_reason: FinishReason | None = None
    audio_metadata: AudioMetadata | UnsetType = UNSET


class ChatCompletionChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk of a completion; the one with the usage has no choice."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: ChatUsage | UnsetType = UNSET


def usage_object(usage: TurnUsage) -> ChatUsage:
    """Render token counts."""
    return ChatUsage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
    )


def tool_call_object(call: TurnToolCall, index: int | UnsetType = UNSET) -> ToolCall:
    """Render a tool call."""
    return ToolCall(index=index, id=call.call_id, function=FunctionCall(call.name, call.arguments))
