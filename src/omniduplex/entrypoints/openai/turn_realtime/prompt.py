"""From a response that is wanted to the turn request that makes it."""

from __future__ import annotations

from collections.abc import Iterator

from omniduplex.engine.conversation.history import message_text
from omniduplex.engine.turns import AnswerRequest, TurnAudio, TurnMessage, TurnToolCall
from omniduplex.entrypoints.openai.turn_realtime.effects import Ask
from omniduplex.protocol.duplex import Item


def answer_request(ask: Ask) -> AnswerRequest:
    """The turn request of a response; decodes sound, so it may take a while.

    Raises:
        ValueError: some sound cannot be decoded.
    """
    wanted = ask.wanted
    system = (
        (TurnMessage(role="system", content=(wanted.instructions,)),) if wanted.instructions else ()
    )
    return AnswerRequest(
        messages=(*system, *_messages(ask)),
        modalities=frozenset(wanted.modalities),
        temperature=wanted.temperature,
        max_tokens=wanted.max_tokens,
        tools=wanted.tools,
        tool_choice=wanted.tool_choice,
        voice=wanted.voice,
        speed=wanted.speed,
    )


def _messages(ask: Ask) -> Iterator[TurnMessage]:
    for item in ask.items:
        match item.type:
            case "function_call":
                call = TurnToolCall(
                    call_id=item.call_id or "",
                    name=item.name or "",
                    arguments=item.arguments or "",
                )
                yield TurnMessage(role="assistant", tool_calls=(call,))
            case "function_call_output":
                output = item.output or ""
                yield TurnMessage(role="tool", content=(output,), tool_call_id=item.call_id or None)
            case "message":
                if content := _content(ask, item):
                    yield TurnMessage(role=item.role or "user", content=content)


def _content(ask: Ask, item: Item) -> tuple[str | TurnAudio, ...]:
    """Its words in one piece, or in the order of the parts where some are yet to be heard."""
    sounds = [part for part in ask.sounds if part[0] == item.id]
    if not sounds:
        words = message_text(item)
        return (words,) if words else ()
    found: list[str | TurnAudio] = []
    for index, part in enumerate(item.content or ()):
        if (item.id, index) in ask.sounds:
            found.append(ask.sounds[item.id, index].decoded())
        elif isinstance(known := part.text or part.transcript, str) and known:
            found.append(known)
    return tuple(found)
