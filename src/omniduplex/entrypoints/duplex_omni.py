"""The in-process door for sessions: typed commands in, typed events out."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig, PipelineConfig
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex_omni_engine import DuplexOmniEngine
from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.duplex_session_handle import DuplexSessionHandle, read_session
from omniduplex.entrypoints.field_names import named_for
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCapabilities,
    DuplexError,
    DuplexSessionConfig,
    DuplexSessionObject,
    Heartbeat,
    SessionPatch,
    apply_patch,
    default_config,
)

# Wire contract, section 12: how long an open may take.
OPEN_TIMEOUT_S = 10.0


class DuplexOmni(AsyncOmniBase[DuplexOmniEngine]):
    """A model served as duplex sessions.

    It opens, resumes and closes them; each is driven by its `DuplexSessionHandle`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        deploy_config: str | Path | None = None,
        pipeline: PipelineConfig | None = None,
    ) -> None:
        super().__init__(model, deploy_config=deploy_config, pipeline=pipeline)
        self._handles: WeakValueDictionary[str, DuplexSessionHandle] = WeakValueDictionary()

    def _create_engine(self, pipeline: PipelineConfig) -> DuplexOmniEngine:
        return DuplexOmniEngine(pipeline)

    @property
    def duplex_capabilities(self) -> DuplexCapabilities:
        """What the deployed model can do."""
        return self._engine.capabilities

    @property
    def duplex_session_config(self) -> DuplexSessionRuntimeConfig:
        """The deployment's limits on sessions."""
        return self.pipeline.duplex_session

    def check_config(self, config: DuplexSessionConfig) -> None:
        """Ask the model whether it would take such a session; opens none.

        Raises:
            DuplexError: what the model refuses.
        """
        self._engine.plugin.validate_config(config)

    @property
    def sessions(self) -> tuple[DuplexSessionHandle, ...]:
        """Handles that are in use and not closed, in the order in which they were opened."""
        return tuple(handle for handle in self._handles.values() if not handle.closed)

    def get_session(self, session_id: str) -> DuplexSessionHandle:
        """The handle of an open session; handles are kept by those who use them, not here.

        Raises:
            DuplexError: `unknown_session` when it is closed or nobody has its handle.
        """
        handle = self._handles.get(session_id)
        if handle is None or handle.closed:
            raise DuplexError("unknown_session", f"there is no open session {session_id!r}")
        return handle

    async def open_session(
        self,
        config: DuplexSessionConfig | SessionPatch | Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = OPEN_TIMEOUT_S,
    ) -> DuplexSessionHandle:
        """Open a session; its first events are `SessionCreated` and `SessionUpdated`.

        A mapping, or a patch, is the session object of the WebSocket handshake. A caller that is
        cancelled, or that has waited for `timeout_s`, leaves no session behind.

        Raises:
            DuplexError: `resource_exhausted` when all slots are taken, `engine_error` when the
                engine takes too long, what is wrong with the mapping, or what the model refuses.
        """
        if not isinstance(config, DuplexSessionConfig):
            defaults = default_config(self.pipeline.model, Dialect.DUPLEX)
            with named_for(Dialect.DUPLEX):
                config = apply_patch(defaults, read_session({} if config is None else config))
        link = DuplexSessionLink(f"duplex-{uuid.uuid4().hex}", self.pipeline.duplex_session)
        try:
            with named_for(config.dialect):
                async with asyncio.timeout(timeout_s):
                    await self._engine.open_session(link, config)
        except TimeoutError:
            message = f"the session did not open within {timeout_s:g} s"
            raise DuplexError("engine_error", message) from None
        handle = DuplexSessionHandle(self._engine, link, config.dialect)
        self._handles[handle.session_id] = handle
        return handle

    async def touch_session(self, session_id: str) -> None:
        """Keep an idle session: its idle time begins anew, and it emits `HeartbeatAck`.

        Raises:
            DuplexError: `unknown_session` when the session is gone.
        """
        await self._engine.describe_session(session_id)
        self._engine.submit_command(session_id, Heartbeat())

    async def detach_session(self, session_id: str, *, expected_lease_generation: int) -> None:
        """A session's connection is gone: keep it for the disconnect grace.

        Raises:
            DuplexError: `session_resume_conflict` when the lease is not of this generation any
                more, `unknown_session` when the session is gone.
        """
        await self._engine.detach_session(session_id, expected_lease_generation)

    async def resume_session(
        self, session_id: str, *, expected_lease_generation: int, control_id: str
    ) -> int:
        """Take a session over: the new lease generation. Its handle stays the same, and knows it.

        Repeating a `control_id` answers with the generation it made.

        Raises:
            DuplexError: `session_resume_conflict` when the lease is not of this generation any
                more, `session_resume_expired` when the session is gone.
        """
        generation = await self._engine.resume_session(
            session_id, expected_lease_generation, control_id
        )
        handle = self._handles.get(session_id)
        if handle is not None:
            handle.lease_generation = max(handle.lease_generation, generation)
        return generation

    async def describe_session(self, session_id: str) -> DuplexSessionObject:
        """A session's public object as it is now.

        Raises:
            DuplexError: `unknown_session` when the session is gone.
        """
        return await self._engine.describe_session(session_id)

    async def close_session(self, session_id: str, reason: str = "client_close") -> None:
        """End a session; returns when it is over, and its slot free as `session.closed` says.

        Raises:
            DuplexError: `unknown_session` when it is gone.
        """
        await self._engine.close_session(session_id, reason)
        handle = self._handles.get(session_id)
        if handle is not None:
            await handle.close(reason)

    async def close_all_sessions(self, reason: str = "shutdown") -> None:
        """End every session."""
        await self._engine.close_all_sessions(reason)

    async def active_session_count(self) -> int:
        """How many slots are taken, sessions being opened included."""
        return await self._engine.active_sessions()
