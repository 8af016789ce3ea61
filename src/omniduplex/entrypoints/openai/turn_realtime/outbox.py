"""Events on their way to one client, in order; who makes more waits until there is room."""

from __future__ import annotations

import asyncio

from omniduplex.entrypoints.duplex.websocket import Farewell
from omniduplex.entrypoints.openai.turn_realtime.sound import ShownEvent, SoundDelta

ROOM = 64
"""Events that may wait before their makers do."""


class Outbox:
    """A queue that never refuses: its makers ask for room before they make."""

    def __init__(self) -> None:
        self._waiting: list[ShownEvent | Farewell] = []
        self._filled = asyncio.Event()
        self._roomy = asyncio.Event()
        self._roomy.set()

    def put(self, event: ShownEvent | Farewell) -> None:
        """Queue an event, or the farewell after which nothing is sent."""
        self._waiting.append(event)
        self._filled.set()
        if len(self._waiting) >= ROOM:
            self._roomy.clear()

    def drop_sound(self, response_id: str) -> None:
        """Take back the audio of a response that nobody wants any more."""
        self._waiting = [event for event in self._waiting if not _is_sound(event, response_id)]

    async def room(self) -> None:
        """Wait until there is room."""
        await self._roomy.wait()

    async def take(self) -> list[ShownEvent | Farewell]:
        """Wait for events and take all that there are."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        events, self._waiting = self._waiting, []
        self._roomy.set()
        return events


def _is_sound(event: ShownEvent | Farewell, response_id: str) -> bool:
    return isinstance(event, SoundDelta) and event.response_id == response_id
