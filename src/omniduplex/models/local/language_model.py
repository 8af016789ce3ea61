"""Language models as one seam: a chat request in, a stream of text, tool calls and an end out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A function the model wants called; `arguments` is JSON text as the model wrote it."""

    call_id: str
    name: str
    arguments: str


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation, shaped as in the chat completions API."""

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class ChatTool(msgspec.Struct, frozen=True, kw_only=True):
    """A function the model may call; `parameters` is its JSON schema, left as raw JSON."""

    name: str
    description: str = ""
    parameters: msgspec.Raw = msgspec.Raw(b'{"type":"object","properties":{}}')


class NamedTool(msgspec.Struct, frozen=True):
    """A tool choice that demands this very function."""

    name: str


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to answer, and how; None leaves a setting to the model's own default."""

    messages: tuple[ChatMessage, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    tools: tuple[ChatTool, ...] = ()
    tool_choice: Literal["none", "auto", "required"] | NamedTool = "auto"


class TextDelta(msgspec.Struct, frozen=True):
    """The next piece of the answer."""

    text: str


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the answer; token counts are None where the model does not tell."""

    finish_reason: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


ChatDelta = TextDelta | ToolCall | Finished


class LanguageModelError(Exception):
    """The model could not answer; `code` is stable, `message` is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class LanguageModel(ABC):
    """Answers chat requests; one instance serves all sessions, from any thread."""

    @abstractmethod
    def stream(self, request: ChatRequest, cancelled: Callable[[], bool]) -> Iterator[ChatDelta]:
        """Answer while blocking the caller's thread; the last delta is always `Finished`.

        When `cancelled()` turns true the stream ends with the finish reason "cancelled".

        Raises:
            LanguageModelError: the model cannot be reached, refuses, or breaks off.
        """

    def read_ahead(self, request: ChatRequest, cancelled: Callable[[], bool]) -> None:
        """Read a conversation that a user's turn will follow, so that its answer begins sooner.

        Blocks like `stream`, and raises as it does. A model that keeps no prompts does nothing.
        """
        return

    @abstractmethod
    def close(self) -> None:
        """Release the model; streams must have ended."""
