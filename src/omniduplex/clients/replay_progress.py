"""How far a conversation has come, as its server events tell: what happened, and which ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

# Where a server names a thing of its own: by the field, or by the `id` of an object in it.
_ID_FIELDS = {
    "session_id": "session",
    "response_id": "response",
    "active_response_id": "response",
    "item_id": "item",
    "previous_item_id": "item",
    "call_id": "call",
}
_ID_OWNERS = {"session": "session", "response": "response", "item": "item", "output": "item"}


class Progress:
    """Counts the events of a server and keeps its ids by kind, in order of creation."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.head = 0
        """Sequence number of the last event."""
        self._ids: dict[str, list[str]] = {}
        self._places: dict[str, tuple[str, int]] = {}

    def add(self, event: dict[str, Any], chosen: Collection[str]) -> None:
        """Take an event; ids that the client itself has chosen are none of the server's."""
        self.counts[message_type(event)] += 1
        sequence = event.get("server_event_seq")
        if isinstance(sequence, int):
            self.head = max(self.head, sequence)
        for kind, name in _ids(event, ""):
            if name not in self._places and name not in chosen:
                ids = self._ids.setdefault(kind, [])
                self._places[name] = (kind, len(ids))
                ids.append(name)

    def place(self, name: str) -> tuple[str, int] | None:
        """Kind and number of an id; None when it is none of the server's."""
        return self._places.get(name)

    def name(self, kind: str, number: int) -> str | None:
        """The id of that kind and number; None when there is none yet."""
        ids = self._ids.get(kind, [])
        return ids[number] if number < len(ids) else None

    def lacks(self, wanted: Counter[str]) -> Counter[str]:
        """What must still happen to have come as far; an answer that is over grows no more."""
        lacking = wanted - self.counts
        if self.counts["response.created"] == self.counts["response.done"] and not any(
            lacking[name] for name in ("response.created", "response.done")
        ):
            for name in [name for name in lacking if name.endswith(".delta")]:
                del lacking[name]
        return lacking


def message_type(event: dict[str, Any]) -> str:
    """Return an event's type, empty when it has none."""
    name = event.get("type")
    return name if isinstance(name, str) else ""


def chosen_id(command: dict[str, Any]) -> str | None:
    """Return the id that a client gives to the item which it creates."""
    item = command.get("item")
    name = item.get("id") if isinstance(item, dict) else None
    is_creation = message_type(command) == "conversation.item.create"
    return name if is_creation and isinstance(name, str) else None


def _ids(value: Any, owner: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for one in value:
            yield from _ids(one, owner)
    elif isinstance(value, dict):
        for name, one in value.items():
            kind = _ID_OWNERS.get(owner) if name == "id" else _ID_FIELDS.get(name)
            if kind is not None and isinstance(one, str):
                yield kind, one
            else:
                yield from _ids(one, name)
