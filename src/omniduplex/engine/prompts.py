"""What a model answers from, in a session as in a turn request."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from omniduplex.engine.turns import TurnToolCall


class PromptMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation as the model shall see it: only what was heard."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    images: tuple[str, ...] = ()
    """Data URLs of JPEG or PNG; only for a model that takes images."""
    tool_calls: tuple[TurnToolCall, ...] = ()
    tool_call_id: str | None = None


class ResponsePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one answer is made from."""

    instructions: str | None
    messages: tuple[PromptMessage, ...]
    speak: bool = True
    """False asks for text alone."""
    temperature: float | None = None
    max_tokens: int | None = None
    voice: str | None = None
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] = "auto"
