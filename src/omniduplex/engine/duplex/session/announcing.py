"""A new item on the wire, beside the event that brings it into being."""

from __future__ import annotations

from omniduplex.engine.conversation.response_items import new_item_events
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import InputCommitted, Item


def announce(core: SessionCore, item: Item, previous: str | None, cause: InputCommitted) -> None:
    """Show an item that was added behind `previous`, and its cause, in its dialect's order."""
    is_openai = core.config.dialect.is_openai
    for event in new_item_events(item, previous, cause, cause_first=is_openai):
        core.emit(event)
