"""What is read of responses and items, in the conversation and beside it."""

from __future__ import annotations

from tests.engine.duplex.session.driver import SessionDriver

from omniduplex.protocol.duplex import ItemAdded, ResponseDone


def endings(driver: SessionDriver) -> dict[str, str]:
    """How each response ended."""
    done = driver.of(ResponseDone)
    assert len({event.response_id for event in done}) == len(done)
    return {event.response_id: event.response.status for event in done}


def history(driver: SessionDriver) -> list[str]:
    return [event.item.id for event in driver.of(ItemAdded)]
