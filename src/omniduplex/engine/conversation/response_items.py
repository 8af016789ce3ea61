"""The items of one response, on the wire and in its conversation: opened once, and done once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import UNSET, UnsetType, structs

from omniduplex.engine.conversation.history import (
    History,
    HistoryEntry,
    SpokenText,
    answer_item_id,
)
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.conversation.tool_calls import CallItem
from omniduplex.protocol.duplex import (
    ContentPart,
    DuplexEvent,
    DuplexResponse,
    InputCommitted,
    Item,
    ItemAdded,
    ItemCreated,
    ItemDone,
    ItemStatus,
    OutputItemAdded,
    OutputItemDone,
    ResponseFacts,
    ResponseStatus,
    StatusDetails,
    Usage,
)


def new_item_events(
    item: Item,
    previous: str | None,
    cause: InputCommitted | OutputItemAdded,
    *,
    cause_first: bool,
) -> tuple[DuplexEvent, ...]:
    """What tells of an item that was added behind `previous`, and of its cause.

    The OpenAI API has the cause first, the contract (sections 7.1 and 7.3) the item.
    """
    added = (
        ItemAdded(item=item, previous_item_id=previous),
        ItemCreated(item=item, previous_item_id=previous),
    )
    return (cause, *added) if cause_first else (*added, cause)


@dataclass(slots=True)
class ResponseItems:
    """What a response puts out; only what is wanted in the `history` gets there."""

    response_id: str
    conversation_id: str
    wanted: Wanted
    history: History
    emit: Callable[[DuplexEvent], None]
    cause_first: bool
    _items: list[Item] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._items)

    def open_message(self, spoken: SpokenText) -> int:
        """The assistant's message begins, without a part; returns its place in the output."""
        item_id = answer_item_id(self.response_id)
        item = Item(id=item_id, status="in_progress", role="assistant", content=())
        return self._open(item, spoken)

    def finish_message(
        self, index: int, status: ItemStatus, content: tuple[ContentPart, ...]
    ) -> None:
        """The message is all that it will be."""
        item = structs.replace(self._items[index], status=status, content=content)
        self._finish(index, item)

    def add_call(self, call: CallItem) -> None:
        """Tell of a whole tool call."""
        index = self._open(call.opened())
        for event in call.told(self.response_id, index):
            self.emit(event)
        self._finish(index, call.completed())

    def response(
        self,
        status: ResponseStatus,
        details: StatusDetails | None = None,
        *,
        usage: Usage | None = None,
        facts: ResponseFacts | UnsetType = UNSET,
    ) -> DuplexResponse:
        """The response as it stands; its output is told at its end."""
        return DuplexResponse(
            id=self.response_id,
            status=status,
            status_details=details,
            output=() if status == "in_progress" else tuple(self._items),
            modalities=self.wanted.modalities,
            output_modalities=self.wanted.modalities,
            conversation_id=self.conversation_id if self.wanted.in_history else None,
            metadata=self.wanted.metadata,
            usage=usage,
            facts=facts,
        )

    def _open(self, item: Item, spoken: SpokenText | None = None) -> int:
        index = len(self._items)
        self._items.append(item)
        added = OutputItemAdded(response_id=self.response_id, output_index=index, item=item)
        if not self.wanted.in_history:
            self.emit(added)
            return index
        entry = HistoryEntry(item, response_id=self.response_id, spoken=spoken)
        previous = self.history.add(entry)
        for event in new_item_events(item, previous, added, cause_first=self.cause_first):
            self.emit(event)
        return index

    def _finish(self, index: int, item: Item) -> None:
        self._items[index] = item
        self.emit(OutputItemDone(response_id=self.response_id, output_index=index, item=item))
        if self.wanted.in_history:
            self.history.replace(item)
            previous = self.history.previous_of(item.id)
            self.emit(ItemDone(item=item, previous_item_id=previous))
