"""Builds what a model is asked from the history: only what was said to it, and what was heard."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omniduplex.engine.conversation.history import History, HistoryEntry, message_text
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.duplex.session.playback_ledger import PlaybackLedger
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.engine.turns import TurnToolCall
from omniduplex.protocol.duplex import Item

MAX_PROMPT_MESSAGES = 128
"""Older messages stay in the conversation but leave the prompt."""


def build_prompt(
    wanted: Wanted,
    entries: Iterable[HistoryEntry],
    playback: PlaybackLedger,
    *,
    with_images: bool,
    extra_user_text: str | None = None,
) -> ResponsePrompt:
    """The prompt of one response; `extra_user_text` is a turn that is not committed yet.

    The response's own input stands in for the conversation if it was given.
    """
    shown = entries if wanted.input is None else wanted.input
    found = (entry_message(entry, playback, with_images=with_images) for entry in shown)
    messages = [message for message in found if message is not None]
    if extra_user_text is not None:
        messages.append(PromptMessage(role="user", text=extra_user_text))
    return ResponsePrompt(
        instructions=wanted.instructions,
        messages=tuple(messages[-MAX_PROMPT_MESSAGES:]),
        speak="audio" in wanted.modalities,
        temperature=wanted.temperature,
        max_tokens=wanted.max_tokens,
        voice=wanted.voice,
        speed=wanted.speed,
        tools=wanted.tools,
        tool_choice=wanted.tool_choice,
    )


def words_to_come(wanted: Wanted, history: History) -> set[str]:
    """The items of what a response answers whose words are still being recognised."""
    pending = set(history.pending)
    if wanted.input is not None:
        pending &= {entry.item.id for entry in wanted.input if history.holds(entry)}
    return pending


def entry_message(
    entry: HistoryEntry, playback: PlaybackLedger, *, with_images: bool
) -> PromptMessage | None:
    """The prompt message of an entry; None when nothing of it was said, shown or heard."""
    item = entry.item
    if item.type == "function_call":
        return PromptMessage(role="assistant", tool_calls=(_tool_call(item),))
    if item.type == "function_call_output":
        return PromptMessage(role="tool", text=_text(item.output), tool_call_id=_text(item.call_id))
    text = _known_text(entry, playback)
    images = _images(item) if with_images else ()
    if isinstance(item.role, msgspec.UnsetType) or not (text or images):
        return None
    return PromptMessage(role=item.role, text=text, images=images)


def _images(item: Item) -> tuple[str, ...]:
    urls = (_text(part.image_url) for part in item.content or ())
    return tuple(url for url in urls if url)


def _known_text(entry: HistoryEntry, playback: PlaybackLedger) -> str:
    """What the user knows of a message: the words heard, then those that were written."""
    heard, content = heard_text(entry, playback), entry.item.content
    if entry.spoken is None or isinstance(content, msgspec.UnsetType):
        return heard
    written = [_text(part.text) for part in content if part.type == "output_text"]
    return " ".join(text for text in (heard, *written) if text)


def heard_text(entry: HistoryEntry, playback: PlaybackLedger) -> str:
    """An item's words; of a spoken answer only those that were heard."""
    record = playback.get(entry.response_id) if entry.response_id else None
    if entry.spoken is None or record is None:
        return message_text(entry.item)
    heard_ms = playback.heard_ms(record)
    return entry.spoken.text if heard_ms is None else entry.spoken.prefix(heard_ms)


def _tool_call(item: Item) -> TurnToolCall:
    return TurnToolCall(
        call_id=_text(item.call_id), name=_text(item.name), arguments=_text(item.arguments)
    )


def _text(value: str | msgspec.UnsetType) -> str:
    return "" if isinstance(value, msgspec.UnsetType) else value
