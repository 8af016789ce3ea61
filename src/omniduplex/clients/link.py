"""One session over one connection after another: opens, reads, keeps alive, resumes, ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from msgspec import UNSET

from omniduplex.clients.acknowledgements import AckLedger
from omniduplex.clients.clock import Clock
from omniduplex.clients.errors import (
    DuplexClientError,
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
)
from omniduplex.clients.events import ServerEvent, wire_type
from omniduplex.clients.fanout import FanOut
from omniduplex.clients.outbox import Outbox, OutboxClosedError
from omniduplex.clients.reconnect import ConnectionResumed, Resumption, SessionResumer
from omniduplex.clients.response import ResponseHandle
from omniduplex.clients.subscription import Subscription
from omniduplex.clients.transport import Message, Transport
from omniduplex.clients.upkeep import Upkeep
from omniduplex.protocol.duplex import (
    AudioFormat,
    CloseSession,
    ErrorEvent,
    HeartbeatAck,
    ResumeSession,
    ResyncRequired,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionPatch,
    SessionReplaced,
    SessionResumed,
    UpdateSession,
)

logger = logging.getLogger(__name__)


class SessionLink:
    """The session's life on the client's side.

    One task reads the transport and fans events out; one acknowledges them in batches; one sends
    heartbeats, unless `heartbeat_interval_s` is None. When the connection breaks, the reader gets
    the session back with `resumer`, if there is one and the server gave a token.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        output: AudioFormat,
        heartbeat_interval_s: float | None,
        resumer: SessionResumer | None = None,
    ) -> None:
        self.outbox = Outbox(transport)
        self.resume_token: str | None = None
        self._transport = transport
        self._heartbeat_interval_s = heartbeat_interval_s
        self._resumer = resumer
        self._out = FanOut(output)
        self._upkeep = Upkeep(transport, self.outbox, clock)
        self._session_id = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._sending_held: asyncio.Task[None] | None = None
        self._open = False
        self._closing = False

    @property
    def acks(self) -> AckLedger:
        """Which events have come."""
        return self._upkeep.acks

    @property
    def end_reason(self) -> str:
        """Why there is no session (any more)."""
        return self._out.end_reason

    @property
    def ended(self) -> bool:
        """Whether the session is over for this client."""
        return self._out.over

    def events(self) -> Subscription[ServerEvent]:
        """Every event from now on."""
        return self._out.events()

    def responses(self) -> Subscription[ResponseHandle]:
        """The answers that nobody has taken yet, and each new one."""
        return self._out.responses()

    async def open(self, patch: SessionPatch, *, event_id: str, timeout_s: float) -> SessionCreated:
        """Connect and ask for a session.

        Raises:
            DuplexClientError: this link has, or had, a session.
            DuplexConnectionError: no connection, or no session within `timeout_s`.
            DuplexProtocolError: the server refused.
            DuplexSessionClosedError: it hung up instead of answering.
        """
        self._refuse_another()
        events, refused = self.events(), None
        try:
            async with asyncio.timeout(timeout_s):
                await self._transport.connect()
                refused = await self._ask(UpdateSession(session=patch, event_id=event_id))
                self._open = self._upkeep.connected = True
                self._start(self._read(), "read")
                created = await _first_created(events)
        except DuplexSessionClosedError as error:
            await self._release()
            raise refused or error from None
        except TimeoutError:
            await self._release()
            raise DuplexConnectionError(f"no session within {timeout_s:g} s") from None
        except BaseException:
            await self._release()
            raise
        self._start_upkeep()
        return created

    def _refuse_another(self) -> None:
        if self._open or self.ended:
            raise DuplexClientError("a client is for one session: make another one for the next")

    async def _ask(self, command: UpdateSession) -> DuplexConnectionError | None:
        """Send it; what a server that hung up already has said is still to be read."""
        try:
            await self._transport.send(command)
        except DuplexConnectionError as error:
            return error
        return None

    async def take_over(self, request: ResumeSession, resumer: SessionResumer) -> SessionResumed:
        """Connect to a session that another client had.

        Raises:
            DuplexClientError: this link has, or had, a session.
            DuplexConnectionError: every attempt failed.
            DuplexSessionClosedError: the server will not give the session back.
        """
        self._refuse_another()
        self._upkeep.acks = AckLedger(request.last_received_server_event_seq)
        try:
            resumption = await resumer.resume(request)
        except BaseException:
            await self._release()
            raise
        self._open = True
        self._carry_on(resumption)
        self._start(self._read(), "read")
        self._start_upkeep()
        return resumption.resumed

    async def send(self, command: Message) -> None:
        """Send a command, or hold it while a broken connection is being replaced.

        Raises:
            DuplexSessionClosedError: there is no session to send it to.
            DuplexConnectionError: the connection broke meanwhile, and is not replaced.
        """
        if not self._open or self.ended:
            raise DuplexSessionClosedError(self.end_reason)
        try:
            await self.outbox.send(command)
        except OutboxClosedError:
            raise DuplexSessionClosedError(self.end_reason) from None
        except DuplexConnectionError:
            # Otherwise the reader sees the same end and resumes; the command is in doubt.
            if not self._resumable:
                raise

    async def close(self, command: CloseSession, *, timeout_s: float) -> None:
        """Say goodbye, wait for the server's, and let go of the transport."""
        self._closing = True
        try:
            if self._open and not self.ended:
                async with asyncio.timeout(timeout_s):
                    await self._upkeep.acknowledge()
                    await self.send(command)
                    await self._out.wait_over()
        except DuplexConnectionError as error:
            self._finish(str(error), failed=True)
        except DuplexSessionClosedError as error:
            logger.debug("it ended before the goodbye: %s", error)
        except TimeoutError:
            logger.warning("no session.closed within %g s of session.close", timeout_s)
        finally:
            self._finish(command.reason, failed=False)
            await self._release()

    @property
    def _resumable(self) -> bool:
        """Whether a broken connection would be replaced; not for a goodbye that has gone out."""
        done = self.ended or (self._closing and not self.outbox.held)
        return self._resumer is not None and self.resume_token is not None and not done

    def _start(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"duplex-client-{name}")
        self._tasks.append(task)
        return task

    def _start_upkeep(self) -> None:
        self._start(self._upkeep.run_acknowledgements(), "acknowledge")
        if self._heartbeat_interval_s is not None:
            self._start(self._upkeep.run_heartbeats(self._heartbeat_interval_s), "heartbeat")

    async def _release(self) -> None:
        """Stop the tasks and close the transport; a task's own fault surfaces here."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        try:
            results = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._transport.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _read(self) -> None:
        try:
            while not self.ended:
                await self._read_one()
        except (DuplexConnectionError, DuplexProtocolError) as error:
            self._finish(str(error), failed=True)
        except DuplexSessionClosedError as error:
            self._finish(error.reason, failed=True)
        finally:
            self._finish("the client stopped reading", failed=True)

    async def _read_one(self) -> None:
        try:
            event = await self._transport.receive()
        except DuplexConnectionError as error:
            await self._reconnect(error)
            return
        self._take(event)
        await self._upkeep.acknowledge_many()

    async def _reconnect(self, cause: DuplexConnectionError) -> None:
        self._upkeep.connected = False
        if self._resumer is None or self.resume_token is None or not self._resumable:
            raise cause
        logger.info("session %s lost its connection: %s", self._session_id, cause)
        self._stop_sending_held()
        self.outbox.hold()
        request = ResumeSession(
            session_id=self._session_id,
            resume_token=self.resume_token,
            last_received_server_event_seq=self.acks.last_seen,
        )
        self._carry_on(await self._resumer.resume(request))

    def _carry_on(self, resumption: Resumption) -> None:
        """The transport carries the session again."""
        self._upkeep.connected = True
        self._out.give(ConnectionResumed(attempt=resumption.attempt))
        for event in (*resumption.early, resumption.resumed):
            self._take(event)
        self._sending_held = self._start(self._send_held(), "send-held")
        self._upkeep.remind()

    def _stop_sending_held(self) -> None:
        if self._sending_held is not None:
            self._sending_held.cancel()
            self._tasks.remove(self._sending_held)
            self._sending_held = None

    async def _send_held(self) -> None:
        try:
            await self.outbox.release()
        except DuplexConnectionError as error:
            logger.debug("broken again with %d commands held: %s", self.outbox.held, error)

    def _take(self, event: ServerEvent) -> None:
        if not self._upkeep.is_new(event):
            return
        self._out.give(event)
        match event:
            case SessionCreated():
                self._created(event)
            case SessionResumed():
                self._session_id, self.resume_token = event.session_id, event.resume_token
            case HeartbeatAck():
                self.outbox.answered()
            case _:
                self._check_end(event)

    def _created(self, event: SessionCreated) -> None:
        self._session_id = event.session.id
        if event.resume_token is not UNSET and event.session.capabilities.supports_session_resume:
            self.resume_token = event.resume_token

    def _check_end(self, event: ServerEvent) -> None:
        match event:
            case ResyncRequired():
                self.resume_token = None
            case SessionClosed():
                self._finish(event.reason, failed=False)
            case SessionExpired():
                self._finish(f"expired: {event.reason}", failed=True)
            case SessionReplaced():
                self._finish("another connection took the session", failed=True)
            case _:
                return

    def _finish(self, reason: str, *, failed: bool) -> None:
        self._upkeep.end()
        self.resume_token = None
        self.outbox.close()
        self._out.end(reason, failed=failed)


async def _first_created(events: Subscription[ServerEvent]) -> SessionCreated:
    async for event in events:
        if isinstance(event, SessionCreated):
            return event
        if isinstance(event, ErrorEvent):
            raise DuplexProtocolError.from_event(event)
        if wire_type(event) == "session.created":
            raise DuplexProtocolError("bad_event", "session.created has a shape that is not known")
    raise DuplexSessionClosedError("closed before session.created")
