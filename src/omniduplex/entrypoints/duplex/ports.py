"""What serving needs of an engine: sessions to open, commands in, neutral events out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.protocol.duplex import (
    DuplexCommand,
    DuplexEvent,
    DuplexSessionConfig,
    DuplexSessionObject,
)


class ServedSession(Protocol):
    """One open session, with a single reader of its events."""

    @property
    def session_id(self) -> str:
        """The engine's name for it, never used twice."""

    @property
    def lease_generation(self) -> int:
        """The engine's count of the connections that took it, as it was opened."""

    async def submit(self, command: DuplexCommand) -> None:
        """Hand a command over in order. Raises DuplexError when the session refuses it."""

    def submit_now(self, command: DuplexCommand) -> bool:
        """Hand a command over, unless that has to wait: then False. Raises as `submit`."""

    def events(self) -> AsyncIterator[DuplexEvent]:
        """Yield `session.created` first; ends after `session.closed` or `session.expired`."""

    def listen(self, eager: Callable[[], None] | None) -> None:
        """Call this first for events that come while `events` waits: it may `take` them."""

    def take(self) -> DuplexEvent | None:
        """Take the event that `events` would yield at once; it is deliverable now."""

    def deliverable(self, event: DuplexEvent) -> bool:
        """Whether the event may still be sent: audio of a cancelled response may not."""

    async def close(self, reason: str = "client_close") -> None:
        """Release the session; a second call does nothing."""


class ServedOmni(Protocol):
    """An engine that opens sessions of one deployed model."""

    @property
    def pipeline(self) -> PipelineConfig:
        """The deployed model."""

    @property
    def alive(self) -> bool:
        """Whether the engine and all its stages run."""

    async def active_session_count(self) -> int:
        """Sessions that hold a slot."""

    async def open_session(self, config: DuplexSessionConfig) -> ServedSession:
        """Admit a session. Raises DuplexError (`resource_exhausted`, or the model's refusal)."""

    async def detach_session(self, session_id: str, *, expected_lease_generation: int) -> None:
        """Begin the grace of a session without a connection.

        Raises:
            DuplexError: `session_resume_conflict` when the lease has moved on,
                `unknown_session` when the session is gone.
        """

    async def resume_session(
        self, session_id: str, *, expected_lease_generation: int, control_id: str
    ) -> int:
        """End the grace and return the lease's next generation.

        The same `control_id` again is answered with the generation that it made.

        Raises:
            DuplexError: `session_resume_conflict` when the lease has moved on,
                `session_resume_expired` when the session is gone.
        """

    async def describe_session(self, session_id: str) -> DuplexSessionObject:
        """Return a session as its client sees it; raises `unknown_session`."""

    async def close_all_sessions(self, reason: str = "shutdown") -> None:
        """End every session and tell its client why."""
