"""The in-process door for sessions: typed commands in, typed events out."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from types import TracebackType

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex.output_buffer import EndOfEvents
from omniduplex.engine.duplex_omni_engine import DuplexOmniEngine
from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCapabilities,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    DuplexSessionConfig,
    DuplexSessionObject,
    SessionClosed,
    SessionExpired,
    default_config,
)


class DuplexSessionHandle:
    """One open session: a thin pipe that keeps no session state beyond its own end.

    `events` has a single consumer. As a context manager it closes the session on leaving.
    """

    def __init__(self, engine: DuplexOmniEngine, link: DuplexSessionLink) -> None:
        self._engine = engine
        self._link = link
        self.capabilities: DuplexCapabilities = engine.capabilities
        self.close_reason: str | None = None
        self.lease_generation = 0

    @property
    def session_id(self) -> str:
        """The id the server gave this session; never reused."""
        return self._link.session_id

    @property
    def closed(self) -> bool:
        """Whether the session's last event was taken, or `close` was called."""
        return self.close_reason is not None

    async def submit(self, command: DuplexCommand) -> None:
        """Send a command on its way; a refusal comes back as an `ErrorEvent`.

        Raises:
            DuplexError: `session_closed`, or `input_backpressure` when too much is on its way.
        """
        if self.closed:
            raise DuplexError("session_closed", "the session is closed", event_id=command.event_id)
        self._link.reserve(command)
        self._engine.submit_command(self.session_id, command)

    async def events(self) -> AsyncIterator[DuplexEvent]:
        """The session's events as they come, until `SessionClosed` or `SessionExpired`."""
        while True:
            try:
                event = await self._link.output.get()
            except EndOfEvents:
                return
            if not self._link.output.deliverable(event):
                continue
            if isinstance(event, SessionClosed | SessionExpired):
                self.close_reason = event.reason
            yield event

    def deliverable(self, event: DuplexEvent) -> bool:
        """Whether an event that `events` gave may still be shown: ask right before showing it.

        Audio of a response that was cancelled meanwhile may not.
        """
        return self._link.output.deliverable(event)

    async def close(self, reason: str = "client_close") -> None:
        """End the session; returns when its slot is free. Again is harmless."""
        await self._engine.close_session(self.session_id, reason)
        if self.close_reason is None:
            self.close_reason = reason

    async def __aenter__(self) -> DuplexSessionHandle:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class DuplexOmni(AsyncOmniBase[DuplexOmniEngine]):
    """A model served as duplex sessions."""

    def _create_engine(self, pipeline: PipelineConfig) -> DuplexOmniEngine:
        return DuplexOmniEngine(pipeline)

    @property
    def capabilities(self) -> DuplexCapabilities:
        """What the deployed model can do."""
        return self._engine.capabilities

    async def open_session(self, config: DuplexSessionConfig | None = None) -> DuplexSessionHandle:
        """Open a session: `SessionCreated`, `ConversationCreated`, `SessionUpdated` come first.

        Raises:
            DuplexError: `resource_exhausted` when all slots are taken, or what the model refuses.
        """
        session_id = f"duplex-{uuid.uuid4().hex}"
        link = DuplexSessionLink(session_id, self.pipeline.duplex_session)
        if config is None:
            config = default_config(self.pipeline.model, Dialect.DUPLEX)
        await self._engine.open_session(link, config)
        return DuplexSessionHandle(self._engine, link)

    async def detach_session(self, session_id: str, *, expected_lease_generation: int) -> None:
        """A session's connection is gone: keep it for the disconnect grace.

        Raises:
            DuplexError: `session_resume_conflict` when the lease is not of this generation any
                more, `session_resume_expired` when the session is gone.
        """
        await self._engine.detach_session(session_id, expected_lease_generation)

    async def resume_session(
        self, session_id: str, *, expected_lease_generation: int, control_id: str
    ) -> int:
        """Take a session over: the new lease generation.

        Repeating a `control_id` answers with the generation it made.

        Raises:
            DuplexError: as `detach_session`.
        """
        return await self._engine.resume_session(session_id, expected_lease_generation, control_id)

    async def describe_session(self, session_id: str) -> DuplexSessionObject:
        """A session's public object as it is now.

        Raises:
            DuplexError: `session_resume_expired` when the session is gone.
        """
        return await self._engine.describe_session(session_id)

    async def active_session_count(self) -> int:
        """How many slots are taken, sessions being opened included."""
        return await self._engine.active_sessions()

    async def close_all_sessions(self, reason: str = "shutdown") -> None:
        """End every session."""
        await self._engine.close_all_sessions(reason)
