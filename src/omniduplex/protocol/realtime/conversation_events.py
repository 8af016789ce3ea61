"""Tier 1 server events of the conversation: its items, and the words of spoken ones."""

from __future__ import annotations

from typing import Literal

import msgspec

from omniduplex.protocol.realtime.events import RealtimeEvent
from omniduplex.protocol.realtime.items import Item


class ConversationObject(msgspec.Struct, frozen=True, kw_only=True):
    """The one conversation of a session."""

    id: str
    object: Literal["realtime.conversation"] = "realtime.conversation"


class ConversationCreated(RealtimeEvent, frozen=True, kw_only=True, tag="conversation.created"):
    """The session's conversation is there; the API tells it in its beta alone."""

    conversation: ConversationObject


class ItemAdded(RealtimeEvent, frozen=True, kw_only=True, tag="conversation.item.added"):
    """An item entered the conversation."""

    item: Item
    previous_item_id: str | None = None


class ItemCreated(RealtimeEvent, frozen=True, kw_only=True, tag="conversation.item.created"):
    """The beta spelling of `conversation.item.added`."""

    item: Item
    previous_item_id: str | None = None


class ItemDone(RealtimeEvent, frozen=True, kw_only=True, tag="conversation.item.done"):
    """An item is final."""

    item: Item
    previous_item_id: str | None = None


class DurationUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a transcription is billed by: seconds of audio."""

    type: Literal["duration"] = "duration"
    seconds: float


class TranscriptionDelta(
    RealtimeEvent,
    frozen=True,
    kw_only=True,
    tag="conversation.item.input_audio_transcription.delta",
):
    """Words of a user item, which the deltas before them are never taken back for.

    Drafts of the model's ear may change with the next word, so that there is one delta, the whole.
    """

    item_id: str
    content_index: int = 0
    delta: str

    @property
    def text(self) -> str:
        """The words."""
        return self.delta


class TranscriptionCompleted(
    RealtimeEvent,
    frozen=True,
    kw_only=True,
    tag="conversation.item.input_audio_transcription.completed",
):
    """The words of a user item."""

    item_id: str
    transcript: str
    content_index: int = 0
    usage: DurationUsage

    @property
    def text(self) -> str:
        """The words."""
        return self.transcript


class TranscriptionError(msgspec.Struct, frozen=True, kw_only=True):
    """Why the words of a user item are not known."""

    type: str
    code: str
    message: str
    param: str | None = None


class TranscriptionFailed(
    RealtimeEvent,
    frozen=True,
    kw_only=True,
    tag="conversation.item.input_audio_transcription.failed",
):
    """The words of a user item will never be known."""

    item_id: str
    content_index: int = 0
    error: TranscriptionError


class ItemDeleted(RealtimeEvent, frozen=True, kw_only=True, tag="conversation.item.deleted"):
    """An item left the conversation."""

    item_id: str


class ItemRetrieved(RealtimeEvent, frozen=True, kw_only=True, tag="conversation.item.retrieved"):
    """An item as it stands."""

    item: Item


class ItemTruncated(RealtimeEvent, frozen=True, kw_only=True, tag="conversation.item.truncated"):
    """An assistant item now ends at `audio_end_ms`."""

    item_id: str
    content_index: int = 0
    audio_end_ms: int
