"""Builds what a model is asked from the history: only what was said to it, and what was heard."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omniduplex.engine.duplex.plugin import PromptMessage, PromptToolCall, ResponsePrompt
from omniduplex.engine.duplex.session.history import HistoryEntry, message_text
from omniduplex.engine.duplex.session.playback_ledger import PlaybackLedger
from omniduplex.protocol.duplex import DuplexSessionConfig, Item, ResponseOptions

MAX_PROMPT_MESSAGES = 128
"""Older messages stay in the conversation but leave the prompt."""


def build_prompt(
    config: DuplexSessionConfig,
    entries: Iterable[HistoryEntry],
    playback: PlaybackLedger,
    *,
    options: ResponseOptions,
    extra_user_text: str | None = None,
) -> ResponsePrompt:
    """The prompt of one response; `extra_user_text` is a turn that is not committed yet."""
    messages = [m for entry in entries if (m := entry_message(entry, playback)) is not None]
    if extra_user_text is not None:
        messages.append(PromptMessage(role="user", text=extra_user_text))
    modalities = options.output_modalities or options.modalities or config.modalities
    return ResponsePrompt(
        instructions=(
            config.instructions if options.instructions is None else options.instructions
        ),
        messages=tuple(messages[-MAX_PROMPT_MESSAGES:]),
        speak="audio" in modalities,
        temperature=config.temperature if options.temperature is None else options.temperature,
        max_tokens=response_max_tokens(config, options),
        voice=options.voice or config.voice,
        tools=config.tools if options.tools is None else options.tools,
        tool_choice=config.tool_choice if options.tool_choice is None else options.tool_choice,
    )


def response_max_tokens(config: DuplexSessionConfig, options: ResponseOptions) -> int | None:
    """The token limit of one response; "inf" lifts the session's."""
    wanted = options.max_output_tokens
    if wanted is None:
        wanted = options.max_response_output_tokens
    if wanted is None:
        wanted = options.max_tokens
    if wanted is None:
        return config.max_output_tokens
    return wanted if isinstance(wanted, int) else None


def entry_message(entry: HistoryEntry, playback: PlaybackLedger) -> PromptMessage | None:
    """The prompt message of an entry; None when nothing of it was said or heard."""
    item = entry.item
    if item.type == "function_call":
        return PromptMessage(role="assistant", tool_calls=(_tool_call(item),))
    if item.type == "function_call_output":
        return PromptMessage(role="tool", text=_text(item.output), tool_call_id=_text(item.call_id))
    text = _known_text(entry, playback)
    if not text or isinstance(item.role, msgspec.UnsetType):
        return None
    return PromptMessage(role=item.role, text=text)


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


def _tool_call(item: Item) -> PromptToolCall:
    return PromptToolCall(
        call_id=_text(item.call_id), name=_text(item.name), arguments=_text(item.arguments)
    )


def _text(value: str | msgspec.UnsetType) -> str:
    return "" if isinstance(value, msgspec.UnsetType) else value
