"""Conversation items and their content parts, as the OpenAI Realtime API has them."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

ItemType = Literal["message", "function_call", "function_call_output"]
Role = Literal["user", "assistant", "system"]
# "cancelled" exists in the duplex dialect only; the OpenAI dialect renders it as "incomplete".
ItemStatus = Literal["in_progress", "completed", "incomplete", "cancelled"]


class AudioTextMark(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the audio a prefix of the transcript ends; both counts are cumulative."""

    text_chars: int
    audio_end_ms: int


class ContentPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of an item: absent keys stay absent on the wire, never null.

    `transcript` of an `input_audio` part is the one exception: the key is always there and is
    null until the words are known. The server leaves `image_url` out of an item that would be
    longer than 512 KiB of JSON with it.
    """

    type: str
    text: str | UnsetType = UNSET
    transcript: str | None | UnsetType = UNSET
    audio: bytes | UnsetType = UNSET
    image_url: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    is_speech: bool | UnsetType = UNSET
    audio_duration_ms: int | UnsetType = UNSET
    audio_text_marks: tuple[AudioTextMark, ...] | UnsetType = UNSET


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation item, in both directions."""

    id: str
    object: Literal["realtime.item"] = "realtime.item"
    type: ItemType = "message"
    status: ItemStatus = "completed"
    role: Role | UnsetType = UNSET
    content: tuple[ContentPart, ...] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    output: str | UnsetType = UNSET


class ItemInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item as a client may send it: everything but the content has a default; a status stays.

    An `item_reference` names an item of the conversation; it stands in a response's input alone.
    """

    id: str | None = None
    object: str | None = None
    type: ItemType | Literal["item_reference"] = "message"
    status: ItemStatus | None = None
    role: Role = "user"
    content: tuple[ContentPart, ...] = ()
    name: str | None = None
    call_id: str | None = None
    arguments: str | None = None
    output: str | None = None
