"""A new item on the wire, beside the event that brings it into being."""

from __future__ import annotations

from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import (
    InputCommitted,
    Item,
    ItemAdded,
    ItemCreated,
    OutputItemAdded,
)


def announce(
    core: SessionCore, item: Item, previous: str | None, cause: InputCommitted | OutputItemAdded
) -> None:
    """Show an item that was added behind `previous`, and its cause.

    The contract (sections 7.1 and 7.3) has the item first, the OpenAI API its cause.
    """
    added = (
        ItemAdded(item=item, previous_item_id=previous),
        ItemCreated(item=item, previous_item_id=previous),
    )
    for event in (cause, *added) if core.config.dialect.is_openai else (*added, cause):
        core.emit(event)
