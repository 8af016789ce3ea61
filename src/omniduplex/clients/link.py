"""One session over one transport: opens it, reads it, keeps it alive, ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any
from weakref import WeakSet

from omniduplex.clients.acknowledgements import BATCH_EVENTS, BATCH_S, AckLedger
from omniduplex.clients.clock import Clock
from omniduplex.clients.demux import ResponseDemux
from omniduplex.clients.errors import (
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
)
from omniduplex.clients.events import ServerEvent, sequence_number, wire_type
from omniduplex.clients.response import ResponseHandle
from omniduplex.clients.subscription import Subscription
from omniduplex.clients.transport import Transport
from omniduplex.protocol.duplex import (
    AudioFormat,
    CloseSession,
    DuplexCommand,
    ErrorEvent,
    EventAck,
    Heartbeat,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionPatch,
    SessionReplaced,
    UpdateSession,
)

logger = logging.getLogger(__name__)


class SessionLink:
    """The session's life on the client's side.

    One task reads the transport and fans events out; one acknowledges them in batches; one sends
    heartbeats, unless `heartbeat_interval_s` is None.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        output: AudioFormat,
        heartbeat_interval_s: float | None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._heartbeat_interval_s = heartbeat_interval_s
        self._demux = ResponseDemux(output)
        self._consumers: WeakSet[Subscription[ServerEvent]] = WeakSet()
        self._acks = AckLedger()
        self._ack_wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()
        self._end_reason = "not open"
        self._failed = False
        self._open = False

    @property
    def end_reason(self) -> str:
        """Why there is no session (any more)."""
        return self._end_reason

    async def open(self, patch: SessionPatch, *, event_id: str, timeout_s: float) -> SessionCreated:
        """Connect and ask for a session.

        Raises:
            DuplexConnectionError: no connection, or no session within `timeout_s`.
            DuplexProtocolError: the server refused.
            DuplexSessionClosedError: it hung up instead of answering.
        """
        events = self.events()
        try:
            async with asyncio.timeout(timeout_s):
                await self._transport.connect()
                await self._transport.send(UpdateSession(session=patch, event_id=event_id))
                self._open = True
                self._start(self._read(), "read")
                created = await _first_created(events)
        except TimeoutError:
            await self._release()
            raise DuplexConnectionError(f"no session within {timeout_s:g} s") from None
        except BaseException:
            await self._release()
            raise
        self._start(self._acknowledge(), "acknowledge")
        if self._heartbeat_interval_s is not None:
            self._start(self._keep_alive(self._heartbeat_interval_s), "heartbeat")
        return created

    async def send(self, command: DuplexCommand | Mapping[str, Any]) -> None:
        """Send a command.

        Raises:
            DuplexSessionClosedError: there is no session to send it to.
            DuplexConnectionError: the connection broke meanwhile.
        """
        if not self._open or self._ended.is_set():
            raise DuplexSessionClosedError(self._end_reason)
        await self._transport.send(command)

    def events(self) -> Subscription[ServerEvent]:
        """Every event from now on."""
        consumer: Subscription[ServerEvent] = Subscription()
        if self._ended.is_set():
            consumer.end(self._end_reason if self._failed else None)
        self._consumers.add(consumer)
        return consumer

    def responses(self) -> Subscription[ResponseHandle]:
        """The answers that nobody has taken yet, and each new one."""
        return self._demux.subscribe()

    async def close(self, command: CloseSession, *, timeout_s: float) -> None:
        """Say goodbye, wait for the server's, and let go of the transport."""
        try:
            if self._open and not self._ended.is_set():
                async with asyncio.timeout(timeout_s):
                    await self._flush_acks()
                    await self._transport.send(command)
                    await self._ended.wait()
        except DuplexConnectionError as error:
            self._finish(str(error), failed=True)
        except TimeoutError:
            logger.warning("no session.closed within %g s of session.close", timeout_s)
        finally:
            self._finish(command.reason, failed=False)
            await self._release()

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=f"duplex-client-{name}"))

    async def _release(self) -> None:
        """Stop the tasks and close the transport; a task's own fault surfaces here."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await self._transport.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _read(self) -> None:
        try:
            while not self._ended.is_set():
                self._take(await self._transport.receive())
                if self._acks.waiting >= BATCH_EVENTS:
                    await self._flush_acks()
        except (DuplexConnectionError, DuplexProtocolError) as error:
            self._finish(str(error), failed=True)
        finally:
            self._finish("the client stopped reading", failed=True)

    def _take(self, event: ServerEvent) -> None:
        seq = sequence_number(event)
        if seq is not None:
            if not self._acks.see(seq):
                return
            self._ack_wanted.set()
        self._demux.add(event)
        for consumer in list(self._consumers):
            consumer.push(event)
        match event:
            case SessionClosed():
                self._finish(event.reason, failed=False)
            case SessionExpired():
                self._finish(f"expired: {event.reason}", failed=True)
            case SessionReplaced():
                self._finish("another connection took the session", failed=True)

    def _finish(self, reason: str, *, failed: bool) -> None:
        if self._ended.is_set():
            return
        self._end_reason = reason
        self._failed = failed
        self._ended.set()
        self._demux.end(reason, failed=failed)
        for consumer in list(self._consumers):
            consumer.end(reason if failed else None)

    async def _acknowledge(self) -> None:
        while not self._ended.is_set():
            await self._ack_wanted.wait()
            await self._clock.sleep(BATCH_S)
            await self._flush_acks()

    async def _flush_acks(self) -> None:
        self._ack_wanted.clear()
        seq = self._acks.take()
        if seq is not None:
            await self._send_quietly(EventAck(server_event_seq=seq))

    async def _keep_alive(self, interval_s: float) -> None:
        while not self._ended.is_set():
            await self._clock.sleep(interval_s)
            await self._send_quietly(Heartbeat())

    async def _send_quietly(self, command: DuplexCommand) -> None:
        """Send what nobody waits for: when the connection is gone, the reader tells everybody."""
        if self._ended.is_set():
            return
        try:
            await self._transport.send(command)
        except DuplexConnectionError as error:
            logger.debug("%s was not sent: %s", type(command).__name__, error)


async def _first_created(events: Subscription[ServerEvent]) -> SessionCreated:
    async for event in events:
        if isinstance(event, SessionCreated):
            return event
        if isinstance(event, ErrorEvent):
            raise DuplexProtocolError.from_event(event)
        if wire_type(event) == "session.created":
            raise DuplexProtocolError("bad_event", "session.created has a shape that is not known")
    raise DuplexSessionClosedError("closed before session.created")
