"""What a client sends without being asked: acknowledgements of events, and signs of life."""

from __future__ import annotations

import asyncio
import logging

from omniduplex.clients.acknowledgements import BATCH_EVENTS, BATCH_S, AckLedger
from omniduplex.clients.clock import Clock
from omniduplex.clients.errors import DuplexConnectionError
from omniduplex.clients.events import ServerEvent, sequence_number
from omniduplex.clients.outbox import Outbox
from omniduplex.clients.transport import Transport
from omniduplex.protocol.duplex import DuplexCommand, EventAck, Heartbeat, SessionResumed

logger = logging.getLogger(__name__)


class Upkeep:
    """Knows which events have come, and sends only while the link says that it is `connected`."""

    def __init__(self, transport: Transport, outbox: Outbox, clock: Clock) -> None:
        self.acks = AckLedger()
        self.connected = False
        self._over = False
        self._transport = transport
        self._outbox = outbox
        self._clock = clock
        self._wanted = asyncio.Event()

    def is_new(self, event: ServerEvent) -> bool:
        """Note an event; False when it has been seen before."""
        seq = sequence_number(event)
        if seq is None:
            return True
        self._wanted.set()
        if isinstance(event, SessionResumed):
            # It belongs to its connection, not to the replay behind it, wherever it is numbered.
            self.acks.see_ahead(seq)
            return True
        return self.acks.see(seq)

    def remind(self) -> None:
        """What could not be acknowledged while there was no connection is, before long."""
        if self.acks.waiting:
            self._wanted.set()

    def end(self) -> None:
        """The session is over: there is nothing to send any more."""
        self.connected = False
        self._over = True

    async def acknowledge(self) -> None:
        """Acknowledge a batch now."""
        self._wanted.clear()
        if self.connected and (seq := self.acks.take()) is not None:
            await self._send_quietly(EventAck(server_event_seq=seq))

    async def acknowledge_many(self) -> None:
        """Acknowledge a batch now if it is a large one."""
        if self.acks.waiting >= BATCH_EVENTS:
            await self.acknowledge()

    async def run_acknowledgements(self) -> None:
        """Acknowledge small batches, until the session is over."""
        while not self._over:
            await self._wanted.wait()
            await self._clock.sleep(BATCH_S)
            await self.acknowledge()

    async def run_heartbeats(self, interval_s: float) -> None:
        """Send signs of life, until the session is over."""
        while not self._over:
            await self._clock.sleep(interval_s)
            if self.connected:
                self._outbox.probed()
                await self._send_quietly(Heartbeat())

    async def _send_quietly(self, command: DuplexCommand) -> None:
        """Send what nobody waits for: when the connection is gone, the reader tells everybody."""
        try:
            await self._transport.send(command)
        except DuplexConnectionError as error:
            logger.debug("%s was not sent: %s", type(command).__name__, error)
