"""A client of an engine in the same process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock, MonotonicClock
from omniduplex.clients.config import SessionConfig
from omniduplex.clients.duplex_trace import DuplexTrace, traced
from omniduplex.clients.errors import DuplexConnectionError, DuplexProtocolError
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.transport import Message, Transport
from omniduplex.protocol.duplex import (
    CloseSession,
    Dialect,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    DuplexSessionConfig,
    RealtimeCommand,
    UpdateSession,
    apply_patch,
    decode_command,
    default_config,
    duplex_param,
    project,
)
from omniduplex.protocol.duplex.codec import check_command


class InlineSession(Protocol):
    """One session of an engine; `DuplexOmni.open_session` gives them."""

    async def submit(self, command: DuplexCommand) -> None:
        """Hand a command over. Raises DuplexError when the session takes none any more."""

    def events(self) -> AsyncIterator[DuplexEvent]:
        """Neutral events, `session.created` first, until the session has ended."""

    def deliverable(self, event: DuplexEvent) -> bool:
        """Whether the event may still be shown: audio of a cancelled response may not."""

    async def close(self, reason: str = "client_close") -> None:
        """End the session."""


class InlineOmni(Protocol):
    """An engine; `DuplexOmni` is one."""

    async def open_session(self, config: DuplexSessionConfig) -> InlineSession:
        """Admit a session. Raises DuplexError when it is refused."""


class InlineDuplexClient(DuplexClientBase):
    """A session of an engine in this process, with the same methods as across the network.

    There is no connection to keep alive, hence no heartbeat and no acknowledgement of events.
    """

    def __init__(
        self,
        omni: InlineOmni,
        *,
        model: str,
        config: SessionConfig = SessionConfig(),  # noqa: B008 - frozen
        handshake_timeout_s: float = 30.0,
        trace: DuplexTrace | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            traced(InlineTransport(omni, model), trace),
            model=model,
            config=config,
            handshake_timeout_s=handshake_timeout_s,
            heartbeat_interval_s=None,
            clock=clock or MonotonicClock(),
        )


class InlineTransport(Transport):
    """Commands straight to a session's mailbox, its events straight back, in the wire's shape."""

    def __init__(self, omni: InlineOmni, model: str) -> None:
        self._omni = omni
        self._model = model
        self._session: InlineSession | None = None
        self._events: AsyncIterator[DuplexEvent] | None = None

    async def connect(self) -> None:
        """There is nothing to connect."""

    async def send(self, command: Message) -> None:
        """Submit a command; the first one opens the session."""
        try:
            await self._send(_as_command(command))
        except DuplexError as error:
            error.param = duplex_param(error.param)
            raise DuplexProtocolError.from_refusal(error) from error

    async def receive(self) -> ServerEvent:
        """The next event that the duplex dialect shows."""
        if self._session is None or self._events is None:
            raise DuplexConnectionError("there is no session")
        async for event in self._events:
            shown = project(event, Dialect.DUPLEX)
            if shown is not None and self._session.deliverable(event):
                return shown
        raise DuplexConnectionError("the session's events ended without a goodbye")

    async def close(self) -> None:
        """Release the session if it is still there."""
        if self._session is not None:
            await self._session.close("client_close")

    async def _send(self, command: DuplexCommand) -> None:
        if self._session is None:
            if not isinstance(command, UpdateSession):
                raise DuplexError("bad_event", "session.update opens a session")
            config = default_config(self._model, Dialect.DUPLEX)
            self._session = await self._omni.open_session(apply_patch(config, command.session))
            self._events = self._session.events()
        elif isinstance(command, CloseSession):
            await self._session.close(command.reason)
        else:
            await self._session.submit(command)


def _as_command(command: Message) -> DuplexCommand:
    if isinstance(command, RealtimeCommand):
        return check_command(command)
    return decode_command(msgspec.json.encode(command))
