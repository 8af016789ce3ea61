"""Who may open a session, and that every slot comes back."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.engine.duplex.session.driver import LISTENING, kinds
from tests.engine.duplex.session.scripted_model import REFUSED_VOICE, ScriptedModel, ScriptedPlugin
from tests.engine.duplex.session.shell import FakePort, HandExecutor, read_now

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.contracts import DuplexFence, StageWork
from omniduplex.engine.duplex.link import DuplexSessionLink, SessionCommand
from omniduplex.engine.duplex.plugin import DuplexModelSessionState
from omniduplex.engine.duplex.session.manager import DuplexSessionManager
from omniduplex.protocol.duplex import (
    AppendAudio,
    CloseSession,
    DuplexError,
    DuplexSessionConfig,
    Heartbeat,
    SessionClosed,
    SessionExpired,
    SessionExpiring,
)
from omniduplex.stages.messages import StageOutput
from omniduplex.telemetry.metrics import ServerMetrics

PENDING = "omniduplex_pending_output_bytes"
OPENED = ["SessionCreated", "ConversationCreated", "SessionUpdated"]
LIMITS = DuplexSessionRuntimeConfig(
    max_sessions=2, idle_ttl_s=60.0, max_pending_input_bytes_per_session=1000
)


class Model(ScriptedModel):
    """Cannot even open, or not close, if it is told so."""

    opens = True
    closes = True

    def plan_close(self) -> Sequence[StageWork]:
        if not self.closes:
            raise RuntimeError("no way to end")
        return super().plan_close()

    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        if not self.opens:
            raise RuntimeError("no listening request")
        return super().plan_open(fence, config)


class Plugin(ScriptedPlugin):
    """A model of its own for every session."""

    def __init__(self) -> None:
        super().__init__()
        self.models: list[Model] = []
        self.breaks = False
        self.opens = True

    def create_session_state(
        self, session_id: str, config: DuplexSessionConfig
    ) -> DuplexModelSessionState:
        if self.breaks:
            raise OSError("no such file")
        self.models.append(Model())
        self.models[-1].opens = self.opens
        return self.models[-1]


class House:
    """A manager whose time and threads are the test's."""

    def __init__(
        self,
        limits: DuplexSessionRuntimeConfig = LIMITS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.plugin = Plugin()
        self.port = FakePort()
        self.executor = HandExecutor()
        self.now = 0.0
        self.manager = DuplexSessionManager(
            plugin=self.plugin,
            port=self.port,
            limits=limits,
            executor=self.executor,
            clock=clock or (lambda: self.now),
        )

    def reap_until_empty(self) -> float:
        """Let the reaper come whenever it wants to; returns the time when the last slot is free."""
        while self.manager.slots_taken:
            self.comes_by()
        return self.now

    def comes_by(self) -> None:
        """Let the reaper come when it next wants to."""
        self.now += self.manager.next_look_s()
        self.manager.reap()

    def opening(
        self, session_id: str, config: DuplexSessionConfig = LISTENING
    ) -> tuple[DuplexSessionLink, "asyncio.Task[None]"]:
        link = DuplexSessionLink(session_id, LIMITS)
        return link, asyncio.create_task(self.manager.open(link, config), name=session_id)

    async def open(self, session_id: str) -> DuplexSessionLink:
        link, task = self.opening(session_id)
        await asyncio.sleep(0)
        self.executor.run()
        await task
        return link

    def send(self, link: DuplexSessionLink, command: Any) -> None:
        link.reserve(command)
        self.manager.dispatch(SessionCommand(link.session_id, command))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_session_opens_with_its_first_events() -> None:
    async def check() -> None:
        house = House()
        link = await house.open("a")
        assert kinds(await read_now(link)) == [
            "SessionCreated",
            "ConversationCreated",
            "SessionUpdated",
        ]
        assert house.port.submitted == [("a", "open")]
        assert house.manager.slots_taken == 1

    run(check())


def test_no_more_sessions_than_there_are_slots() -> None:
    async def check() -> None:
        house = House()
        first = await house.open("a")
        _, opening = house.opening("b")
        await asyncio.sleep(0)
        assert house.manager.slots_taken == 2
        with pytest.raises(DuplexError) as refused:
            await house.open("c")
        assert refused.value.code == "resource_exhausted"
        assert refused.value.kind.retryable

        house.executor.run()
        await opening
        house.send(first, CloseSession())
        assert house.manager.slots_taken == 1
        await house.open("c")

    run(check())


def test_a_refused_configuration_takes_no_slot() -> None:
    async def check() -> None:
        house = House()
        _, opening = house.opening("a", msgspec.structs.replace(LISTENING, voice=REFUSED_VOICE))
        with pytest.raises(DuplexError) as refused:
            await opening
        assert refused.value.param == "session.voice"
        assert house.manager.slots_taken == 0

    run(check())


def test_a_plugin_that_breaks_gives_the_slot_back() -> None:
    async def check() -> None:
        house = House()
        house.plugin.breaks = True
        for name in "abc":
            with pytest.raises(OSError, match="no such file"):
                await house.open(name)
        assert house.manager.slots_taken == 0

    run(check())


def test_a_model_that_cannot_open_gives_the_slot_back() -> None:
    async def check() -> None:
        house = House()
        house.plugin.opens = False
        for name in "abc":
            with pytest.raises(RuntimeError, match="no listening request"):
                await house.open(name)
        assert house.manager.slots_taken == 0

    run(check())


def test_an_open_that_is_cancelled_gives_the_slot_back() -> None:
    async def check() -> None:
        house = House()
        for name in "abc":
            _, opening = house.opening(name)
            await asyncio.sleep(0)
            assert house.manager.slots_taken == 1
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            assert house.manager.slots_taken == 0
        house.executor.run()
        assert house.manager.slots_taken == 0
        assert house.port.submitted == []

    run(check())


def test_messages_reach_their_session_alone() -> None:
    async def check() -> None:
        house = House()
        first, second = await house.open("a"), await house.open("b")
        for link in (first, second):
            await read_now(link)
        house.send(first, Heartbeat())
        house.manager.stage_output("b", 0, StageOutput("any"))

        assert kinds(await read_now(first)) == ["HeartbeatAck"]
        assert await read_now(second) == []

    run(check())


def test_messages_for_nobody_are_dropped() -> None:
    async def check() -> None:
        house = House()
        manager = house.manager
        manager.dispatch(SessionCommand("nobody", Heartbeat()))
        manager.stage_output("nobody", 0, StageOutput("any"))
        manager.stage_lost({"nobody"}, 0, "died")
        manager.close("nobody", "bye")
        assert manager.slots_taken == 0

    run(check())


def test_input_on_its_way_is_bounded_and_counted_out_again() -> None:
    async def check() -> None:
        house = House()
        link = await house.open("a")
        for _ in range(3):
            house.send(link, AppendAudio(audio=bytes(600)))
        link.reserve(AppendAudio(audio=bytes(600)))
        with pytest.raises(DuplexError) as refused:
            link.reserve(AppendAudio(audio=bytes(600), event_id="e1"))
        assert (refused.value.code, refused.value.event_id) == ("input_backpressure", "e1")

    run(check())


def test_a_lost_stage_ends_the_sessions_it_carried() -> None:
    async def check() -> None:
        house = House()
        first, second = await house.open("a"), await house.open("b")
        house.manager.stage_lost({"a"}, 0, "died")

        assert isinstance((await read_now(first))[-1], SessionExpired)
        assert kinds(await read_now(second)) == [
            "SessionCreated",
            "ConversationCreated",
            "SessionUpdated",
        ]
        assert house.manager.slots_taken == 1

    run(check())


def test_silent_clients_lose_their_sessions() -> None:
    async def check() -> None:
        house = House()
        silent, lively = await house.open("a"), await house.open("b")
        house.now = 59.0
        house.send(lively, Heartbeat())
        house.now = 60.0
        house.manager.reap()

        events = await read_now(silent)
        assert isinstance(events[-1], SessionExpired)
        assert events[-1].reason == "idle_ttl_expired"
        assert house.manager.slots_taken == 1
        house.now = 120.0
        house.manager.reap()
        assert house.manager.slots_taken == 0
        assert isinstance((await read_now(lively))[-1], SessionExpired)

    run(check())


@given(
    idle_ttl_s=st.floats(0.5, 400.0) | st.none(),
    grace_s=st.floats(0.5, 400.0),
    warning_s=st.floats(0.1, 60.0),
    interval_s=st.floats(0.05, 60.0),
    began=st.floats(0.0, 1e6),
)
def test_a_session_that_nobody_carries_ends_when_its_time_is_up(
    idle_ttl_s: float | None, grace_s: float, warning_s: float, interval_s: float, began: float
) -> None:
    """Within 250 ms, however seldom all sessions are looked at (R19)."""
    limits = DuplexSessionRuntimeConfig(
        idle_ttl_s=idle_ttl_s,
        disconnect_grace_s=grace_s,
        expiry_warning_s=warning_s,
        reaper_interval_s=interval_s,
    )

    async def check() -> None:
        house = House(limits)
        house.now = began
        link = await house.open("a")
        house.manager.detach("a", 0)
        idle_s = math.inf if idle_ttl_s is None else min(idle_ttl_s, LISTENING.idle_timeout_s)
        due = began + min(grace_s, idle_s)

        ended = house.reap_until_empty()

        assert due <= ended <= due + 0.25
        told = [event for event in await read_now(link) if isinstance(event, SessionExpiring)]
        assert len(told) == len({event.reason for event in told}) > 0

    run(check())


def test_the_reaper_comes_in_time_for_a_grace_that_begins_while_it_sleeps() -> None:
    limits = msgspec.structs.replace(LIMITS, disconnect_grace_s=0.01, reaper_interval_s=1000.0)

    async def check() -> None:
        house = House(limits, time.monotonic)
        reaper = asyncio.create_task(house.manager.reaper_loop())
        link = await house.open("a")
        await asyncio.sleep(0)
        house.manager.detach("a", 0)
        async with asyncio.timeout(60):
            while not isinstance(event := await link.output.get(), SessionExpired):
                pass
        assert event.reason == "disconnect_grace_expired"
        reaper.cancel()

    run(check())


def test_a_model_that_cannot_even_close_keeps_nothing_of_its_stages() -> None:
    async def check() -> None:
        house = House()
        link = await house.open("a")
        house.plugin.models[0].closes = False
        house.now = 60.0
        house.manager.reap()

        closed = (await read_now(link))[-1]
        assert isinstance(closed, SessionClosed)
        assert closed.reason == "internal_error"
        assert closed.slot_released
        assert house.port.released == ["a"]
        assert house.manager.slots_taken == 0
        await house.open("b")
        assert house.manager.slots_taken == 1

    run(check())


def test_a_session_keeps_its_slot_until_it_is_cleaned_up_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = own_metrics(monkeypatch)

    async def check() -> None:
        house = House()
        link, other = await house.open("a"), await house.open("b")
        house.port.breaks_at = {"release"}
        house.send(link, CloseSession())
        closed = (await read_now(link))[-1]
        assert isinstance(closed, SessionClosed)
        assert (closed.reason, closed.slot_released) == ("client_close", False)

        for _ in range(5):
            assert house.manager.slots_taken == metrics("omniduplex_sessions_open") == 2
            assert metrics("omniduplex_sessions_closing") == 1
            with pytest.raises(DuplexError, match="capacity_exhausted"):
                await house.open("c")
            house.comes_by()
        assert metrics("omniduplex_session_cleanup_failures_total") == 6
        assert not house.manager.close("a", "again")

        house.port.breaks_at.clear()
        house.comes_by()
        assert house.port.released == ["a"]
        assert house.manager.slots_taken == metrics("omniduplex_sessions_open") == 1
        assert metrics("omniduplex_sessions_closing") == 0
        await house.open("c")
        assert kinds(await read_now(other)) == OPENED

    run(check())


def test_an_open_that_fails_is_cleaned_up_after() -> None:
    async def check() -> None:
        house = House()
        house.plugin.opens = False
        house.port.breaks_at = {"release"}
        with pytest.raises(RuntimeError):
            await house.open("a")
        assert house.manager.slots_taken == 1
        house.port.breaks_at.clear()
        house.comes_by()
        assert house.manager.slots_taken == 0

    run(check())


def test_a_worker_that_is_gone_ends_the_wait_for_a_slot() -> None:
    limits = msgspec.structs.replace(LIMITS, reaper_interval_s=1000.0)

    async def check() -> None:
        house = House(limits)
        reaper = asyncio.create_task(house.manager.reaper_loop())
        await house.open("a")
        house.port.breaks_at = {"release"}
        house.manager.close("a", "bye")
        house.port.breaks_at.clear()
        # The clock stands still: by its pause the next attempt would never come.
        house.manager.stage_lost({"a"}, 0, "it died")
        async with asyncio.timeout(60):
            await house.port.has_released.wait()
        assert house.manager.slots_taken == 0
        reaper.cancel()

    run(check())


def own_metrics(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], float | None]:
    """Read metrics by name; engines of other tests in this process write into others."""
    registry = CollectorRegistry()
    metrics = ServerMetrics(registry)
    for module in ("manager", "closing"):
        monkeypatch.setattr(f"omniduplex.engine.duplex.session.{module}.METRICS", metrics)
    return registry.get_sample_value


def test_output_that_waits_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = own_metrics(monkeypatch)

    async def check() -> None:
        house = House()
        link = await house.open("a")
        house.manager.reap()
        assert metrics(PENDING) == link.output.pending_bytes > 0

        await read_now(link)
        house.manager.reap()
        assert metrics(PENDING) == 0

    run(check())


def test_all_sessions_can_be_closed() -> None:
    async def check() -> None:
        house = House()
        links = [await house.open("a"), await house.open("b")]
        house.manager.close_all("shutdown")
        for link in links:
            closed = (await read_now(link))[-1]
            assert isinstance(closed, SessionClosed)
            assert closed.reason == "shutdown"
        assert house.manager.slots_taken == 0

    run(check())
