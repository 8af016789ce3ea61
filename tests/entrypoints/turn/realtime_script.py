"""Scripts for a Realtime connection of the `openai` package as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

TIMEOUT_S = 200
Event = dict[str, Any]
Script = Callable[[AsyncRealtimeConnection], Awaitable[None]]


def run(base: str, model: str, script: Script, **query: str) -> None:
    """Run a script against a connection of the package as it is."""

    async def connect() -> None:
        async with (
            asyncio.timeout(TIMEOUT_S),
            AsyncOpenAI(api_key="any", base_url=f"{base}/v1") as c,
        ):
            connecting = c.realtime.connect(model=model, extra_query=dict(query))
            async with connecting as connection:
                await script(connection)

    asyncio.run(connect())


async def until(connection: AsyncRealtimeConnection, wire_type: str) -> list[Event]:
    """Read up to and including the first event of this type."""
    events: list[Event] = []
    async for event in connection:
        assert event.type != "error", event
        events.append(event.to_dict())
        if event.type == wire_type:
            return events
    raise AssertionError(f"the connection ended before {wire_type}")


def last(events: list[Event], wire_type: str) -> Event:
    return [event for event in events if event["type"] == wire_type][-1]
