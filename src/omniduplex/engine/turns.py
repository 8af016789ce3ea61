"""The vocabulary of turn requests: what one may be asked for, and the chunks it answers with."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class TurnAudio(msgspec.Struct, frozen=True):
    """Sound in a request: int16 little-endian mono."""

    pcm: bytes
    sample_rate_hz: int


class TurnToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of one tool; `arguments` is a JSON text."""

    call_id: str
    name: str
    arguments: str


class TurnMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation: texts and sounds in the order in which they belong."""

    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[str | TurnAudio, ...] = ()
    tool_calls: tuple[TurnToolCall, ...] = ()
    tool_call_id: str | None = None


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the next message of a conversation, in words alone or spoken as well."""

    messages: tuple[TurnMessage, ...]
    modalities: frozenset[Literal["text", "audio"]] = frozenset({"text"})
    temperature: float | None = None
    max_tokens: int | None = None
    tools: tuple[dict[str, Any], ...] = ()
    """Functions, each with `name`, `description` and the JSON schema `parameters`."""
    tool_choice: str | dict[str, Any] = "auto"
    """`none`, `auto`, `required`, or the `name` of the one function to call."""
    voice: str | None = None
    speed: float = 1.0
    """How many times as fast as usual it is spoken, by a model that can."""

    @property
    def speak(self) -> bool:
        """Whether the answer is wanted as sound."""
        return "audio" in self.modalities


class SpeechRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for a text to be spoken as it stands."""

    text: str
    voice: str | None = None
    speed: float = 1.0
    """How many times as fast as usual; 1 for a model without `supports_speed`."""


class TranscriptionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the words of a recording; `language` is an ISO 639-1 code, None the model's own."""

    audio: TurnAudio
    language: str | None = None


TurnRequest = AnswerRequest | SpeechRequest | TranscriptionRequest

FinishReason = Literal["stop", "length", "tool_calls"]


class TurnUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens read and written."""

    input_tokens: int
    output_tokens: int


class TurnChunk(msgspec.Struct, frozen=True, kw_only=True):
    """The next piece of a turn; the last one, and it alone, has a `finish_reason`.

    `pcm` is int16 little-endian mono at `sample_rate_hz`, and `text` the words in it.
    """

    text: str = ""
    pcm: bytes = b""
    sample_rate_hz: int = 0
    tool_calls: tuple[TurnToolCall, ...] = ()
    finish_reason: FinishReason | None = None
    usage: TurnUsage | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing follows."""
        return self.finish_reason is not None


class TurnFailure(msgspec.Struct, frozen=True):
    """The end of a turn that a stage could not finish."""

    reason: str


RefusalCode = Literal["unsupported", "invalid_value", "rate_limit_exceeded"]


class TurnRefused(Exception):  # noqa: N818 - the model's answer to a wish, not a fault
    """This deployment does not take the request; `param` names the part it minds."""

    def __init__(self, code: RefusalCode, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param


def checked(request: TurnRequest) -> TurnRequest:
    """Return a request whose parts are of their types, which nothing looks at when it is made.

    Raises:
        TurnRefused: `invalid_value`; the message ends with where it is wrong.
    """
    try:
        parts = msgspec.to_builtins(request, builtin_types=(bytes,))
        return msgspec.convert(parts, type(request), builtin_types=(bytes,))
    except (TypeError, msgspec.ValidationError) as error:
        raise TurnRefused("invalid_value", f"{type(request).__name__}: {error}") from error
