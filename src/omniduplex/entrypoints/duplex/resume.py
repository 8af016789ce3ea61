"""What a session is resumed with: its client's token, the engine's lease, the events it missed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.entrypoints.duplex.credential import RandomBytes, ResumeCredential
from omniduplex.entrypoints.duplex.event_log import SessionEventLog
from omniduplex.entrypoints.duplex.journal import EventJournal
from omniduplex.entrypoints.duplex.ports import ServedOmni, ServedSession
from omniduplex.protocol.duplex import (
    DUPLEX_EXTENSION,
    Dialect,
    DuplexError,
    DuplexSessionObject,
    ResumeSession,
    SessionCreated,
    SessionResumed,
    SessionUpdated,
)

Opening = TypeVar("Opening", bound=SessionCreated | SessionUpdated)

logger = logging.getLogger(__name__)


class ResumeRight:
    """The right to carry one session on over another connection, if there is one."""

    def __init__(
        self,
        session: ServedSession,
        *,
        omni: ServedOmni,
        log: SessionEventLog,
        new_id: Callable[[], str],
        random_bytes: RandomBytes,
    ) -> None:
        self._session_id = session.session_id
        self._lease = session.lease_generation
        self._omni = omni
        self._log = log
        self._new_id = new_id
        self._random_bytes = random_bytes
        self._credential: ResumeCredential | None = None
        self._control_id: str | None = None

    @property
    def granted(self) -> bool:
        """Whether the session waits for another connection when its own is gone."""
        return self._credential is not None

    @property
    def _limits(self) -> DuplexSessionRuntimeConfig:
        return self._omni.pipeline.duplex_session

    def grant(self, event: Opening, generation: int) -> Opening:
        """Make the session resumable if its model and its client's dialect are, and say so.

        The dialect may be taken up late: then the journal begins with the update that does it.
        """
        session = event.session
        is_duplex = self._log.dialect is Dialect.DUPLEX or DUPLEX_EXTENSION in session.extensions
        if self.granted or not (is_duplex and session.capabilities.supports_session_resume):
            return event
        limits = self._limits
        self._log.journal = EventJournal(
            max_bytes=limits.resume_replay_max_bytes_per_session,
            ttl_s=limits.resume_replay_ttl_s,
            head=self._log.head,
        )
        self._credential = ResumeCredential(self._random_bytes)
        return msgspec.structs.replace(
            event,
            attachment_generation=generation,
            resume_token=self._credential.issue(),
            disconnect_grace_s=limits.disconnect_grace_s,
        )

    def arrived(self) -> None:
        """The client has its newest token."""
        if self._credential is not None:
            self._credential.arrived()

    def check(self, request: ResumeSession, *, is_free: bool) -> None:
        """See whether a client may have the session; `is_free` when no connection carries it.

        Raises:
            DuplexError: `unsupported_session_resume`, `invalid_resume_token`.
            JournalGap: what it missed cannot be told in full.
        """
        if not self._granted().opens(request.resume_token, is_free=is_free):
            raise DuplexError("invalid_resume_token", "The token is not the session's newest.")
        self._log.replay_after(request.last_received_server_event_seq)

    async def take_lease(self) -> DuplexSessionObject:
        """Become the engine's owner of the session, as it then stands.

        Raises:
            DuplexError: the engine's refusal, or `runtime_resume_failed`.
        """
        # An attempt whose outcome is unknown is repeated under its own id.
        self._control_id = self._control_id or self._new_id()
        try:
            self._lease = await self._omni.resume_session(
                self._session_id,
                expected_lease_generation=self._lease,
                control_id=self._control_id,
            )
            self._control_id = None
            return await self._omni.describe_session(self._session_id)
        except DuplexError as refused:
            self._control_id = None
            if refused.code == "unknown_session":  # it ended just after it was resumed
                raise expired_session(self._session_id) from None
            raise
        except Exception:
            logger.exception("session %s: the engine did not resume it", self._session_id)
            raise DuplexError(
                "runtime_resume_failed", "The engine could not attach the session."
            ) from None

    def tell(
        self, request: ResumeSession, session: DuplexSessionObject, generation: int
    ) -> list[str]:
        """The texts that a resumed client gets, with its next token.

        Raises:
            JournalGap: as `check`; the token stays what it was.
        """
        cursor = request.last_received_server_event_seq
        replay = self._log.replay_after(cursor)
        resumed = SessionResumed(
            session_id=self._session_id,
            session=session,
            attachment_generation=generation,
            resume_token=self._granted().issue(request.resume_token),
            disconnect_grace_s=self._limits.disconnect_grace_s,
        )
        texts = [self._log.render_at(resumed, cursor), *replay]
        return [text for text in texts if text is not None]

    def detaching(self) -> Coroutine[Any, Any, None]:
        """Work that has the engine count the time without a connection from here on."""
        return self._detach(self._lease)

    async def _detach(self, lease: int) -> None:
        try:
            await self._omni.detach_session(self._session_id, expected_lease_generation=lease)
        except DuplexError as refused:
            # A resume was faster, or the session is over: either way there is no grace to start.
            logger.debug("session %s: not detached: %s", self._session_id, refused.code)

    def _granted(self) -> ResumeCredential:
        if self._credential is None:
            raise DuplexError("unsupported_session_resume", "This session cannot be resumed.")
        return self._credential


def expired_session(session_id: str) -> DuplexError:
    """Return the refusal of a resume that comes too late, or names what never was."""
    return DuplexError(
        "session_resume_expired",
        f"Unknown or expired duplex session: {session_id}",
        param="session_id",
    )
