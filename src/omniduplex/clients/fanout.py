"""From the one reader of a session to everybody who listens, until the session is over."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from omniduplex.clients.demux import ResponseDemux
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.response import ResponseHandle
from omniduplex.clients.subscription import Subscription
from omniduplex.protocol.duplex import AudioFormat


class FanOut:
    """Hands events to their consumers and answers to theirs; remembers how it ended."""

    def __init__(self, output: AudioFormat) -> None:
        self.end_reason = "not open"
        self._demux = ResponseDemux(output)
        # Those who came first hear first.
        self._consumers: WeakKeyDictionary[Subscription[ServerEvent], None] = WeakKeyDictionary()
        self._over = asyncio.Event()
        self._failed = False

    @property
    def over(self) -> bool:
        """Whether nothing comes any more."""
        return self._over.is_set()

    async def wait_over(self) -> None:
        """Return when nothing comes any more."""
        await self._over.wait()

    def events(self) -> Subscription[ServerEvent]:
        """Every event from now on."""
        consumer: Subscription[ServerEvent] = Subscription()
        if self.over:
            consumer.end(self._failure)
        self._consumers[consumer] = None
        return consumer

    def responses(self) -> Subscription[ResponseHandle]:
        """The answers that nobody has taken yet, and each new one."""
        return self._demux.subscribe()

    def give(self, event: ServerEvent) -> None:
        """Hand an event to everybody."""
        self._demux.add(event)
        for consumer in list(self._consumers):
            consumer.push(event)

    def end(self, reason: str, *, failed: bool) -> None:
        """Nothing follows; what was said first stays."""
        if self.over:
            return
        self.end_reason = reason
        self._failed = failed
        self._over.set()
        self._demux.end(reason, failed=failed)
        for consumer in list(self._consumers):
            consumer.end(self._failure)

    @property
    def _failure(self) -> str | None:
        return self.end_reason if self._failed else None
