"""The conversation's items in order, and the view of them that a model prompt is built from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from omniduplex.protocol.duplex import AudioTextMark, ContentPart, DuplexError, Item


@dataclass(slots=True)
class SpokenText:
    """A transcript, with marks of where in the audio its prefixes end; and what is only written."""

    text: str = ""
    duration_ms: float = 0.0
    marks: list[AudioTextMark] = field(default_factory=list)
    written: str = ""

    def add(self, text: str, duration_ms: float) -> None:
        """Words, and the audio in which they are spoken."""
        self.text += text
        self.duration_ms += duration_ms
        if text:
            mark = AudioTextMark(text_chars=len(self.text), audio_end_ms=round(self.duration_ms))
            self.marks.append(mark)

    def prefix(self, heard_ms: float) -> str:
        """What had been said after `heard_ms`, by linear interpolation between the marks.

        Cut back to a whole word, since a word begun is not a word heard.
        """
        if heard_ms <= 0:
            return ""
        if heard_ms >= self.duration_ms:
            return self.text
        chars, before_chars, before_ms = 0.0, 0, 0.0
        for mark in self.marks:
            if heard_ms < mark.audio_end_ms:
                share = (heard_ms - before_ms) / max(1.0, mark.audio_end_ms - before_ms)
                chars = before_chars + share * (mark.text_chars - before_chars)
                break
            before_chars, before_ms = mark.text_chars, float(mark.audio_end_ms)
            chars = before_chars
        return _whole_words(self.text, int(chars))

    def cut(self, heard_ms: float) -> None:
        """Nothing behind `heard_ms` was heard, and never will be."""
        self.text = self.prefix(heard_ms)
        self.duration_ms = min(self.duration_ms, heard_ms)

    def content(self, heard: str) -> tuple[ContentPart, ...]:
        """The parts of an answer as far as it is made, of whose sound so much was `heard`."""
        parts: list[ContentPart] = []
        if self.text or self.duration_ms:
            parts.append(ContentPart(type="output_audio", transcript=heard))
        if self.written:
            parts.append(ContentPart(type="output_text", text=self.written))
        return tuple(parts)


def _whole_words(text: str, chars: int) -> str:
    if chars >= len(text) or text[chars].isspace():
        return text[:chars].rstrip()
    return text[: text.rfind(" ", 0, chars) + 1].rstrip()


def answer_item_id(response_id: str) -> str:
    """The id of the message item that a response makes."""
    return f"item_{response_id}"


def response_id_of(item_id: str) -> str:
    """The response whose message item this would be."""
    return item_id.removeprefix("item_")


@dataclass(slots=True)
class HistoryEntry:
    """An item, and for an assistant's answer its response and what was said when."""

    item: Item
    response_id: str | None = None
    spoken: SpokenText | None = None

    @property
    def is_being_made(self) -> bool:
        """Whether a response is at work on it; a client's own item may say so, and is not."""
        return self.response_id is not None and self.item.status == "in_progress"


OVERHEAD_CHARS = 64
"""What an item, a part or a mark counts for beside its texts: empty ones take memory, too."""
MAX_RESERVED = 64
"""Announced ids whose items never came, as of noise that was no turn, are forgotten in time."""


class History:
    """Items by id and order; `version` changes with every change, so that drafts can be checked.

    User items with parts whose words are still being recognised are `pending`. `chars` is the size
    of all items as they stand.
    """

    def __init__(self) -> None:
        self._entries: dict[str, HistoryEntry] = {}
        self._order: list[str] = []
        self._pending: list[tuple[str, int]] = []
        self._reserved: dict[str, None] = {}
        self.chars = 0
        self.version = 0

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[HistoryEntry]:
        return (self._entries[item_id] for item_id in self._order)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._entries

    def get(self, item_id: str) -> HistoryEntry:
        """The entry of an item.

        Raises:
            DuplexError: `item_not_found`.
        """
        return self.find(item_id, param="item_id")

    def find(self, item_id: str, *, param: str) -> HistoryEntry:
        """The entry of an item that `param` of a command names; raises as `get`."""
        entry = self._entries.get(item_id)
        if entry is None:
            message = f"no item {item_id!r} in this conversation"
            raise DuplexError("item_not_found", message, param=param)
        return entry

    def holds(self, entry: HistoryEntry) -> bool:
        """Whether this very entry is here, and not only one with its id."""
        return self._entries.get(entry.item.id) is entry

    def reserve(self, item_id: str) -> None:
        """This id was told to the client before its item is here: nobody else may take it."""
        self._reserved[item_id] = None
        if len(self._reserved) > MAX_RESERVED:
            del self._reserved[next(iter(self._reserved))]

    def is_taken(self, item_id: str) -> bool:
        """Whether a client must not use this id for an item of its own."""
        return item_id in self._entries or item_id in self._reserved

    def previous_of(self, item_id: str) -> str | None:
        """The id before an item, null for the first."""
        index = self._order.index(item_id)
        return self._order[index - 1] if index else None

    def add(self, entry: HistoryEntry, previous_item_id: str | None = None) -> str | None:
        """Insert after `previous_item_id` ("root": in front, null: at the end); the id before it.

        Raises:
            DuplexError: `item_not_found`, `item_create_duplicate_item_id`.
        """
        item_id = entry.item.id
        if item_id in self._entries:
            raise DuplexError(
                "item_create_duplicate_item_id", f"item {item_id!r} exists", param="item.id"
            )
        index = self._index_after(previous_item_id)
        self._entries[item_id] = entry
        self._order.insert(index, item_id)
        self._reserved.pop(item_id, None)
        self.chars += item_size(entry.item)
        self.version += 1
        return self._order[index - 1] if index else None

    def _index_after(self, previous_item_id: str | None) -> int:
        if previous_item_id is None:
            return len(self._order)
        if previous_item_id == "root":
            return 0
        if previous_item_id not in self._entries:
            raise DuplexError(
                "item_not_found",
                f"no item {previous_item_id!r} in this conversation",
                param="previous_item_id",
            )
        return self._order.index(previous_item_id) + 1

    def replace(self, item: Item) -> None:
        """Show this item in the place of the one with its id."""
        entry = self.get(item.id)
        self.chars += item_size(item) - item_size(entry.item)
        entry.item = item
        self.version += 1

    def touch(self) -> None:
        """What was heard of some item changed."""
        self.version += 1

    def remove(self, item_id: str) -> HistoryEntry:
        """Take an item out; raises as `get`."""
        entry = self.get(item_id)
        del self._entries[item_id]
        self._order.remove(item_id)
        self.chars -= item_size(entry.item)
        self._pending = [one for one in self._pending if one[0] != item_id]
        self.version += 1
        return entry

    @property
    def pending(self) -> tuple[str, ...]:
        """User items whose words are not all known yet, oldest first."""
        return tuple(dict.fromkeys(item_id for item_id, _ in self._pending))

    def await_transcript(self, item_id: str, content_index: int = 0) -> None:
        """The words of this part will follow."""
        self._pending.append((item_id, content_index))

    def awaits(self, item_id: str, content_index: int = 0) -> bool:
        """Whether the words of this part are still to come."""
        return (item_id, content_index) in self._pending

    def transcript_arrived(self, item_id: str, transcript: str, content_index: int = 0) -> None:
        """The words of a pending part became known."""
        self._pending.remove((item_id, content_index))
        item = self._entries[item_id].item
        parts = list(item.content or ())
        parts[content_index] = msgspec.structs.replace(parts[content_index], transcript=transcript)
        self.replace(msgspec.structs.replace(item, content=tuple(parts)))

    def transcript_failed(self, item_id: str, content_index: int = 0) -> None:
        """The words of a pending part will never be known."""
        self._pending.remove((item_id, content_index))


def message_text(item: Item) -> str:
    """All words of a message item, whatever parts hold them."""
    if isinstance(item.content, msgspec.UnsetType):
        return ""
    return " ".join(text for part in item.content if (text := _part_text(part)))


def _part_text(part: ContentPart) -> str:
    if not isinstance(part.text, msgspec.UnsetType):
        return part.text
    if isinstance(part.transcript, msgspec.UnsetType) or part.transcript is None:
        return ""
    return part.transcript


def text_size(item: Item) -> int:
    """Characters of text in an item, whatever holds them."""
    size = sum(len(text or "") for text in (item.arguments, item.output))
    for part in item.content or ():
        texts = (part.text, part.transcript, part.image_url, part.detail)
        size += sum(len(text or "") for text in texts)
    return size


def item_size(item: Item) -> int:
    """What an item counts for: its texts and names, and what it takes to hold them."""
    names = sum(len(name or "") for name in (item.id, item.name, item.call_id))
    held = 1 + sum(1 + len(part.audio_text_marks or ()) for part in item.content or ())
    return text_size(item) + names + held * OVERHEAD_CHARS
