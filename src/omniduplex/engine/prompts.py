"""What a model answers from, in a session as in a turn request."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from omniduplex.engine.turns import AnswerRequest, TurnMessage, TurnRefused, TurnToolCall


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
    speed: float = 1.0
    """How many times as fast as usual it is spoken, by a model that can."""
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] = "auto"


def answer_request(prompt: ResponsePrompt) -> AnswerRequest:
    """What a model is asked where it has no session.

    Raises:
        TurnRefused: something is to be seen; a turn has no eyes.
    """
    if any(message.images for message in prompt.messages):
        raise TurnRefused("unsupported", "no images beside the conversation")
    given = prompt.instructions
    system = () if given is None else (TurnMessage(role="system", content=(given,)),)
    said = (
        TurnMessage(
            role=message.role,
            content=(message.text,) if message.text else (),
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
        )
        for message in prompt.messages
    )
    return AnswerRequest(
        messages=(*system, *said),
        modalities=frozenset({"text", "audio"} if prompt.speak else {"text"}),
        temperature=prompt.temperature,
        max_tokens=prompt.max_tokens,
        tools=prompt.tools,
        tool_choice=prompt.tool_choice,
        voice=prompt.voice,
        speed=prompt.speed,
    )
