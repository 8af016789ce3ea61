"""A new item on the wire, beside the event that brings it into being."""

from __future__ import annotations

from omniduplex.engine.conversation.response_items import new_item_events
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import InputCommitted, Item


def announce(core: SessionCore, item: Item, previous: str | None, cause: InputCommitted) -> None:
    """Show an item that was added behind `previous`, and its cause, in its client's order."""
    cause_first = not core.config.knows_extensions
    for event in new_item_events(item, previous, cause, cause_first=cause_first):
        core.emit(event)
