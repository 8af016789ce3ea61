"""Tier 1 client events: the OpenAI Realtime API's own, as frozen structs tagged by wire type."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.realtime.items import ItemInput


class RealtimeCommand(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"
):
    """Base of every client event; `event_id` comes back in the error that refuses it.

    A default value is left out when a client encodes the event.
    """

    event_id: str | None = None


class AppendAudio(RealtimeCommand, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    """Audio for the open utterance, in the session's input format."""

    audio: bytes


class Commit(RealtimeCommand, frozen=True, kw_only=True, tag="input_audio_buffer.commit"):
    """Seal the buffered audio into a user item."""


class ClearInput(RealtimeCommand, frozen=True, kw_only=True, tag="input_audio_buffer.clear"):
    """Drop the audio that is not committed; speech that was announced has stopped then."""


class CreateItem(RealtimeCommand, frozen=True, kw_only=True, tag="conversation.item.create"):
    """Put an item into the conversation; `previous_item_id` "root" is the front, null the end."""

    item: ItemInput
    previous_item_id: str | None = None


class RetrieveItem(RealtimeCommand, frozen=True, kw_only=True, tag="conversation.item.retrieve"):
    """Ask for an item as it stands."""

    item_id: str


class DeleteItem(RealtimeCommand, frozen=True, kw_only=True, tag="conversation.item.delete"):
    """Take an item out of the conversation."""

    item_id: str


class TruncateItem(RealtimeCommand, frozen=True, kw_only=True, tag="conversation.item.truncate"):
    """Cut an assistant item's audio at what the user heard, in ms."""

    item_id: str
    audio_end_ms: float
    content_index: int = 0


class ResponseOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `response` object of `response.create`: overrides for this response only."""

    modalities: tuple[str, ...] | None = None
    output_modalities: tuple[str, ...] | None = None
    instructions: str | None = None
    voice: str | None = None
    output_audio_format: Any = None
    response_format: Any = None
    audio: Any = None
    temperature: float | None = None
    max_output_tokens: int | str | None = None
    max_response_output_tokens: int | str | None = None
    max_tokens: int | str | None = None
    speed: float | None = None
    tools: tuple[dict[str, Any], ...] | None = None
    tool_choice: str | dict[str, Any] | None = None
    conversation: str | None = None
    metadata: dict[str, Any] | None = None
    input: tuple[ItemInput, ...] | None = None
    prompt: dict[str, Any] | None = None
    extra_body: dict[str, Any] | None = None


class CreateResponse(RealtimeCommand, frozen=True, kw_only=True, tag="response.create"):
    """Ask the model to answer now."""

    response: ResponseOptions | UnsetType = UNSET


class CancelResponse(RealtimeCommand, frozen=True, kw_only=True, tag="response.cancel"):
    """Stop the response that is named, or the conversation's active one; buffered input stays."""

    response_id: str | None = None


class ClearOutputAudio(RealtimeCommand, frozen=True, kw_only=True, tag="output_audio_buffer.clear"):
    """Forget output that is not played; stops the response that makes it."""

    response_id: str | None = None
