"""The engine of sessions: turn requests too, and a manager of duplex sessions on its loop."""

from __future__ import annotations

import asyncio
import contextlib

from omniduplex.config.errors import ConfigError
from omniduplex.config.objects import load_object
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.async_omni_engine import TurnEngineBase
from omniduplex.engine.duplex.link import (
    AbandonSession,
    DuplexSessionLink,
    SessionCommand,
)
from omniduplex.engine.duplex.plugin import DuplexModelPlugin
from omniduplex.engine.duplex_orchestrator import DuplexOrchestrator
from omniduplex.engine.omni_engine_base import EngineStopped
from omniduplex.protocol.duplex import (
    DuplexCommand,
    DuplexError,
    DuplexSessionConfig,
    DuplexSessionObject,
)


class DuplexOmniEngine(TurnEngineBase[DuplexOrchestrator]):
    """Loads the model's plugin and carries session messages onto the engine loop."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        super().__init__(pipeline)
        if pipeline.duplex_plugin is None or pipeline.session_mode != "duplex":
            raise ConfigError(f"pipeline {pipeline.name!r} is not deployed as a duplex model")
        plugin_class = load_object(pipeline.duplex_plugin)
        if not (isinstance(plugin_class, type) and issubclass(plugin_class, DuplexModelPlugin)):
            raise ConfigError(f"{pipeline.duplex_plugin} is no DuplexModelPlugin")
        self.plugin: DuplexModelPlugin = plugin_class(pipeline)
        self.capabilities = self.plugin.capabilities(pipeline.duplex_session.max_sessions)

    def _create_orchestrator(self) -> DuplexOrchestrator:
        return DuplexOrchestrator(self.pipeline, self.plugin, turns=self._turn_plugin)

    async def open_session(self, link: DuplexSessionLink, config: DuplexSessionConfig) -> None:
        """Open a session; raises `DuplexError`. A cancelled open leaves no session behind."""
        try:
            await self.call(self.orchestrator.manager.open(link, config))
        except asyncio.CancelledError:
            # The engine may have finished the open before the cancellation reached it.
            self.send(AbandonSession(link.session_id))
            raise

    def submit_command(self, session_id: str, command: DuplexCommand) -> None:
        """Send a command on its way to a session, without waiting."""
        self.send(SessionCommand(session_id, command))

    async def close_session(self, session_id: str, reason: str) -> None:
        """End a session; returns when it is over, and its slot free as `session.closed` says.

        All have ended with the engine.

        Raises:
            DuplexError: `unknown_session` when it is gone.
        """
        with contextlib.suppress(EngineStopped):
            await self.call(self._close(session_id, reason))

    async def _close(self, session_id: str, reason: str) -> None:
        if not self.orchestrator.manager.close(session_id, reason):
            raise DuplexError("unknown_session", f"there is no open session {session_id!r}")

    async def detach_session(self, session_id: str, expected_generation: int) -> None:
        """A session's connection is gone; raises `DuplexError` as the manager's `detach`."""
        await self.call(self._detach(session_id, expected_generation))

    async def _detach(self, session_id: str, expected_generation: int) -> None:
        self.orchestrator.manager.detach(session_id, expected_generation)

    async def resume_session(
        self, session_id: str, expected_generation: int, control_id: str
    ) -> int:
        """Take a session over; raises `DuplexError` as the manager's `resume`."""
        return await self.call(self._resume(session_id, expected_generation, control_id))

    async def _resume(self, session_id: str, expected_generation: int, control_id: str) -> int:
        return self.orchestrator.manager.resume(session_id, expected_generation, control_id)

    async def describe_session(self, session_id: str) -> DuplexSessionObject:
        """A session as it stands; raises `DuplexError` when it is gone."""
        return await self.call(self._describe(session_id))

    async def _describe(self, session_id: str) -> DuplexSessionObject:
        return self.orchestrator.manager.public_object(session_id)

    async def close_all_sessions(self, reason: str) -> None:
        """End every session; all have ended with the engine."""
        with contextlib.suppress(EngineStopped):
            await self.call(self._close_all(reason))

    async def active_sessions(self) -> int:
        """How many slots are taken."""
        return await self.call(self._count())

    async def _close_all(self, reason: str) -> None:
        self.orchestrator.manager.close_all(reason)

    async def _count(self) -> int:
        return self.orchestrator.manager.slots_taken
