"""All sessions of one engine: who may open one, which runner a message is for, who is idle."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.contracts import DuplexStagePort
from omniduplex.engine.duplex.link import DuplexSessionLink, SessionCommand
from omniduplex.engine.duplex.plugin import DuplexModelPlugin
from omniduplex.engine.duplex.session.closing import ClosingSessions
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.engine_session import DuplexEngineSession
from omniduplex.engine.duplex.session.inputs import CloseRequest, StageLost, StageResult, Tick
from omniduplex.engine.duplex.session.observer import SessionObserver
from omniduplex.engine.duplex.session.runner import DuplexSessionRunner
from omniduplex.engine.turn_plugin import TurnPlugin
from omniduplex.protocol.duplex import DuplexError, DuplexSessionConfig, DuplexSessionObject
from omniduplex.stages.backlog import Backlog
from omniduplex.stages.messages import StageOutput
from omniduplex.telemetry.metrics import METRICS
from omniduplex.telemetry.tracing import default_tracer

logger = logging.getLogger(__name__)

# What the reaper leaves between two looks, so that it never spins over a rounding error.
MIN_LOOK_S = 0.01


def new_id(prefix: str) -> str:
    """An id that was never used."""
    return f"{prefix}_{uuid.uuid4().hex}"


class DuplexSessionManager:
    """Admission, dispatch and reaping; runs on the engine loop alone.

    A slot is taken before anything else and given back on every way out, a cancelled open
    included; but not before the stages are rid of what its session had there.
    """

    def __init__(
        self,
        *,
        plugin: DuplexModelPlugin,
        port: DuplexStagePort,
        limits: DuplexSessionRuntimeConfig,
        executor: Executor,
        turns: TurnPlugin | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        make_id: Callable[[str], str] = new_id,
    ) -> None:
        self._plugin = plugin
        self._port = port
        self._limits = limits
        self._executor = executor
        answers = turns is not None and turns.features.supports_chat_completions
        self._turns = turns if answers else None
        self._clock = clock
        self._wall_clock = wall_clock
        self._make_id = make_id
        self._capabilities = plugin.capabilities(limits.max_sessions)
        self._runners: dict[str, DuplexSessionRunner] = {}
        self._links: dict[str, DuplexSessionLink] = {}
        self._closing = ClosingSessions(
            port.release, clock=clock, longest_pause_s=limits.reaper_interval_s
        )
        self._opening = 0
        self._planned_at = math.inf
        self._sooner = asyncio.Event()

    @property
    def slots_taken(self) -> int:
        """Sessions that are open or being opened, or over and not cleaned up after yet."""
        return len(self._runners) + len(self._closing) + self._opening

    async def open(self, link: DuplexSessionLink, config: DuplexSessionConfig) -> None:
        """Admit a session and start it; its first events go to the link's output.

        Raises:
            DuplexError: `resource_exhausted`, or what the plugin refuses in the config.
        """
        if self.slots_taken >= self._limits.max_sessions:
            METRICS.sessions_refused.labels(code="resource_exhausted").inc()
            raise DuplexError(
                "resource_exhausted",
                f"duplex_session_capacity_exhausted: limit={self._limits.max_sessions}",
            )
        self._plugin.validate_config(config)
        self._opening += 1
        try:
            loop = asyncio.get_running_loop()
            # The plugin may read files here, so it is not asked on the loop.
            model = await loop.run_in_executor(
                self._executor, self._plugin.create_session_state, link.session_id, config
            )
        finally:
            self._opening -= 1
        core = SessionCore(
            session_id=link.session_id,
            config=config,
            capabilities=self._capabilities,
            plugin=self._plugin,
            model=model,
            new_id=self._make_id,
            limits=self._limits,
            opened_at=self._clock(),
            expires_at_unix=self._expires_at(),
            turns=self._turns,
            pending=link.pending,
        )
        self._start(link, DuplexEngineSession(core), loop)

    def _expires_at(self) -> int | None:
        longest_s = self._limits.max_session_s
        return None if longest_s is None else int(self._wall_clock() + longest_s)

    def _start(
        self,
        link: DuplexSessionLink,
        session: DuplexEngineSession,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        runner = DuplexSessionRunner(
            session,
            link=link,
            port=self._port,
            executor=self._executor,
            clock=self._clock,
            call_soon=loop.call_soon_threadsafe,
            call_later=loop.call_later,
            on_ended=lambda reason: self._over(link.session_id),
            observer=SessionObserver(
                link.session_id, session.config.model, metrics=METRICS, tracer=default_tracer()
            ),
        )
        self._runners[link.session_id] = runner
        self._links[link.session_id] = link
        METRICS.sessions_opened.inc()
        self._show_slots()
        try:
            runner.start()
        except BaseException:
            self._over(link.session_id)
            raise
        self._plan(runner.session.next_look_at)

    def _over(self, session_id: str) -> bool:
        """A session has ended; whether its slot is free."""
        self._runners.pop(session_id, None)
        self._links.pop(session_id, None)
        is_free = self._closing.end(session_id)
        self._show_slots()
        if not is_free:
            self._plan(self._closing.next_at)
        return is_free

    def _show_slots(self) -> None:
        METRICS.sessions_open.set(len(self._runners) + len(self._closing))

    def dispatch(self, message: SessionCommand) -> None:
        """Give a command to its session; a session that is gone has already said so."""
        runner = self._runners.get(message.session_id)
        if runner is None:
            return
        self._links[message.session_id].taken(message.command)
        runner.post(message.command)

    def backlog(self, session_id: str) -> Backlog | None:
        """What a session has waiting for stages; None when it is gone."""
        link = self._links.get(session_id)
        return None if link is None else link.pending.backlog

    def stage_output(self, session_id: str, stage_id: int, output: StageOutput) -> None:
        """Give a stage's output to its session."""
        runner = self._runners.get(session_id)
        if runner is not None:
            runner.post(StageResult(stage_id, output))

    def stage_lost(self, session_ids: set[str], stage_id: int, message: str) -> None:
        """A stage died with requests of these sessions."""
        for session_id in session_ids:
            runner = self._runners.get(session_id)
            if runner is not None:
                runner.post(StageLost(stage_id, message))
            elif self._closing.stage_lost(session_id):
                self._sooner.set()

    def close(self, session_id: str, reason: str) -> bool:
        """End a session; False when it is gone."""
        runner = self._runners.get(session_id)
        if runner is None:
            return False
        runner.post(CloseRequest(reason=reason))
        return True

    def close_all(self, reason: str) -> None:
        """End every session."""
        for session_id in tuple(self._runners):
            self.close(session_id, reason)

    def detach(self, session_id: str, expected_generation: int) -> None:
        """A session's connection is gone: its grace begins.

        Raises:
            DuplexError: `unknown_session`, `session_resume_conflict`.
        """
        runner = self._living(session_id)
        runner.session.detach(expected_generation, self._clock())
        self._plan(runner.session.next_look_at)

    def resume(self, session_id: str, expected_generation: int, control_id: str) -> int:
        """A connection takes a session: the new lease generation.

        Raises:
            DuplexError: `session_resume_expired`, `session_resume_conflict`.
        """
        runner = self._living(session_id, gone="session_resume_expired")
        return runner.session.resume(expected_generation, control_id, self._clock())

    def public_object(self, session_id: str) -> DuplexSessionObject:
        """A session as its client sees it; raises `unknown_session` when it is gone."""
        return self._living(session_id).session.public_object()

    def _living(self, session_id: str, *, gone: str = "unknown_session") -> DuplexSessionRunner:
        runner = self._runners.get(session_id)
        if runner is not None:
            # Its time may be up although the reaper was not here yet.
            runner.post(Tick())
        if runner is None or session_id not in self._runners:
            raise DuplexError(gone, f"Unknown or expired duplex session: {session_id}")
        return runner

    async def reaper_loop(self) -> None:
        """Look after sessions whose time is up, and what others left behind, for ever."""
        while True:
            self._sooner.clear()
            delay_s = self.next_look_s()
            self._planned_at = self._clock() + delay_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._sooner.wait()
            self.reap()

    def _plan(self, at: float | None) -> None:
        """The reaper is to come in time for what is due then (s)."""
        if at is not None and at < self._planned_at:
            self._sooner.set()

    def next_look_s(self) -> float:
        """Seconds to what is due next, or until all sessions are looked at anyway."""
        looks = (runner.session.next_look_at for runner in self._runners.values())
        next_at = min((at for at in looks if at is not None), default=math.inf)
        next_at = min(next_at, self._closing.next_at)
        return min(max(next_at - self._clock(), MIN_LOOK_S), self._limits.reaper_interval_s)

    def reap(self) -> None:
        """Let the sessions whose time is up see what time it is; clean up where that failed."""
        self._closing.retry()
        self._show_slots()
        pending = sum(link.output.pending_bytes for link in self._links.values())
        METRICS.pending_output_bytes.set(pending)
        now = self._clock()
        for runner in tuple(self._runners.values()):
            at = runner.session.next_look_at
            if at is not None and at <= now:
                runner.post(Tick())
