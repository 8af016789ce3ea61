"""How a client gets its session back over a new connection."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from omniduplex.clients.clock import Clock
from omniduplex.clients.errors import (
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
)
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.transport import Transport
from omniduplex.protocol.duplex import (
    ErrorEvent,
    RealtimeEvent,
    ResumeSession,
    ResyncRequired,
    SessionClosed,
    SessionExpired,
    SessionResumed,
)

# Refusals that another attempt would only repeat (wire contract, 5.2).
FATAL_CODES = frozenset(
    {
        "invalid_resume_token",
        "invalid_session_resume",
        "session_resume_conflict",
        "session_resume_expired",
        "unsupported_session_resume",
    }
)


class ReconnectPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a client tries to resume, the first time at once, and its waits in s between."""

    max_attempts: int = 5
    backoff_s: tuple[float, float] = (0.25, 4.0)

    def delay(self, attempt: int, rng: random.Random) -> float:
        """Seconds to wait after attempt number `attempt`, counted from 1, has failed."""
        low, high = self.backoff_s
        return rng.uniform(low, min(high, low * 2.0**attempt))


class ResumeCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """All that another process needs to take a session over; whoever has it has the session.

    The token is good until the next resume. `last_server_event_seq` is the last event that has
    arrived: the replay begins after it.
    """

    url: str
    model: str
    session_id: str
    resume_token: str
    last_server_event_seq: int

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"ResumeCredentials({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [
            (name, "***" if name == "resume_token" else getattr(self, name))
            for name in self.__struct_fields__
        ]


class ConnectionResumed(RealtimeEvent, frozen=True, kw_only=True, tag="connection.resumed"):
    """The session goes on over a new connection; made by the client, never sent by a server.

    `attempt` counts from 1.
    """

    attempt: int


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is back, and the events that came before the server said so."""

    attempt: int
    resumed: SessionResumed
    early: list[ServerEvent]


class SessionResumer:
    """Makes new connections until one of them carries the session, or none will."""

    def __init__(
        self,
        transport: Transport,
        policy: ReconnectPolicy,
        *,
        clock: Clock,
        rng: random.Random,
        timeout_s: float,
    ) -> None:
        self._transport = transport
        self._policy = policy
        self._clock = clock
        self._rng = rng
        self._timeout_s = timeout_s

    async def resume(self, request: ResumeSession) -> Resumption:
        """Connect and resume; the transport then carries the session.

        Raises:
            DuplexSessionClosedError: the server will not give the session back.
            DuplexConnectionError: every attempt failed.
        """
        failure: Exception | None = None
        for attempt in range(1, self._policy.max_attempts + 1):
            if attempt > 1:
                await self._clock.sleep(self._policy.delay(attempt - 1, self._rng))
            await self._transport.close()
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._attempt(attempt, request)
            except TimeoutError:
                failure = DuplexConnectionError(f"no answer within {self._timeout_s:g} s")
            except DuplexConnectionError as error:
                failure = error
            except DuplexProtocolError as error:
                if error.code in FATAL_CODES:
                    raise DuplexSessionClosedError(str(error)) from error
                failure = error
        raise DuplexConnectionError(
            f"not resumed in {self._policy.max_attempts} attempts: {failure}"
        ) from failure

    async def _attempt(self, attempt: int, request: ResumeSession) -> Resumption:
        await self._transport.connect()
        await self._transport.send(request)
        early: list[ServerEvent] = []
        while True:
            match event := await self._transport.receive():
                case SessionResumed():
                    return Resumption(attempt=attempt, resumed=event, early=early)
                case ErrorEvent():
                    raise DuplexProtocolError.from_event(event)
                case ResyncRequired() | SessionClosed() | SessionExpired():
                    raise DuplexSessionClosedError(f"it cannot be resumed: {event.reason}")
                case _:
                    early.append(event)
