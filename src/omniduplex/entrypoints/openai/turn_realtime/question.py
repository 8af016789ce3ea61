"""What a response of a half-duplex conversation answers, as it was when it was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from omniduplex.engine.conversation.history import History, HistoryEntry
from omniduplex.protocol.duplex import Item


class Question:
    """The entries that a response answers: those of the conversation, or its own `input`.

    What comes into the conversation later is no part of it; what is taken out is none any more.
    """

    def __init__(self, entries: Iterable[HistoryEntry], history: History) -> None:
        self._history = history
        self._entries = tuple((entry, history.holds(entry)) for entry in entries)
        self._awaited = {entry.item.id for entry, is_shared in self._entries if is_shared}
        self.settle()

    @property
    def is_heard(self) -> bool:
        """Whether all its words are known that ever will be."""
        return not self._awaited

    def awaits(self, item_id: str) -> bool:
        """Whether the words of this item are still to come."""
        return item_id in self._awaited

    def settle(self) -> None:
        """Some words became known, or an item was taken out."""
        self._awaited &= set(self._history.pending)

    @property
    def items(self) -> tuple[Item, ...]:
        """Its items as they stand."""
        return tuple(
            entry.item
            for entry, is_shared in self._entries
            if not is_shared or self._history.holds(entry)
        )

    @property
    def shared(self) -> frozenset[str]:
        """The ids of those that stand in the conversation, too."""
        return frozenset(entry.item.id for entry, is_shared in self._entries if is_shared)
