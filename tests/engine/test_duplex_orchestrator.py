"""Sessions beside turn requests: outputs find their owner, losses stay where they happen."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.engine.duplex.session.driver import LISTENING, kinds, loud
from tests.engine.duplex.session.scripted_model import ScriptedModel, ScriptedPlugin
from tests.engine.duplex.session.shell import read_now
from tests.engine.fake_pool import Pools, pipeline
from tests.engine.stage_models import ForwardTurn

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.contracts import Abort, DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.link import AbandonSession, DuplexSessionLink, SessionCommand
from omniduplex.engine.duplex.model_events import Listen, Projected
from omniduplex.engine.duplex.plugin import DuplexModelSessionState
from omniduplex.engine.duplex_orchestrator import DuplexOrchestrator
from omniduplex.engine.messages import AddTurn
from omniduplex.engine.turns import TurnChunk, TurnFailure
from omniduplex.protocol.duplex import AppendAudio, CloseSession, DuplexSessionConfig, SessionClosed
from omniduplex.stages.messages import StageInput, StageOutput

LIMITS = DuplexSessionRuntimeConfig(max_sessions=2)


class Model(ScriptedModel):
    """Listens under a request of its own; says `Listen` to whatever comes out."""

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self.request_id = DuplexFence(session_id, 0, 0).request_id("ear")
        self.closes = True

    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        return (Submit(0, StageInput(self.request_id)),)

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        return (Submit(0, StageInput(self.request_id, pcm=pcm)),)

    def plan_close(self) -> Sequence[StageWork]:
        if not self.closes:
            raise RuntimeError("no way to end")
        return (Abort((self.request_id,)),)

    def project(self, stage_id: int, output: StageOutput) -> Sequence[Projected]:
        return (Listen(),)


class Plugin(ScriptedPlugin):
    def __init__(self) -> None:
        super().__init__()
        self.models: dict[str, Model] = {}

    def create_session_state(
        self, session_id: str, config: DuplexSessionConfig
    ) -> DuplexModelSessionState:
        self.models[session_id] = Model(session_id)
        return self.models[session_id]


class Engine:
    """A running orchestrator with sessions "a" and "b"."""

    def __init__(self) -> None:
        self.pools = Pools()
        self.now = 0.0
        plugin = Plugin()
        self.models = plugin.models
        self.orchestrator = DuplexOrchestrator(
            pipeline(duplex_session=LIMITS),
            plugin,
            make_pool=self.pools,
            clock=lambda: self.now,
        )
        self.links: dict[str, DuplexSessionLink] = {}

    async def open(self, name: str) -> None:
        self.links[name] = link = DuplexSessionLink(name, LIMITS)
        await self.orchestrator.manager.open(link, LISTENING)
        opening = ["SessionCreated", "ConversationCreated", "SessionUpdated"]
        assert kinds(await read_now(link)) == opening

    async def events(self, name: str) -> list[str]:
        return kinds(await read_now(self.links[name]))


def running(check: Callable[[Engine], Awaitable[None]]) -> None:
    async def main() -> None:
        engine = Engine()
        await engine.orchestrator.start()
        for name in "ab":
            await engine.open(name)
        await check(engine)
        await engine.orchestrator.shutdown()
        assert engine.orchestrator.manager.slots_taken == 0

    asyncio.run(main())


def ear(name: str) -> str:
    return Model(name).request_id


def test_outputs_go_to_the_session_that_asked() -> None:
    async def check(engine: Engine) -> None:
        engine.orchestrator.dispatch(SessionCommand("a", AppendAudio(audio=loud(20))))
        assert engine.pools[0].inputs[-1].request_id == ear("a")
        engine.pools[0].put_out(ear("a"))

        assert await engine.events("a") == ["ListenDecision"]
        assert await engine.events("b") == []
        assert engine.pools[1].inputs == []

    running(check)


def test_turn_requests_go_by_as_ever() -> None:
    async def check(engine: Engine) -> None:
        parts: list[TurnChunk | TurnFailure] = []
        engine.orchestrator.dispatch(AddTurn("turn", ForwardTurn("turn", "in"), parts.append))
        engine.pools[0].put_out("turn-0", finished=True)
        engine.pools[1].put_out("turn-1", finished=True)
        assert parts == [TurnChunk(text="out", finish_reason="stop")]
        assert await engine.events("a") == []

    running(check)


@pytest.mark.parametrize(("finished", "error"), [(True, ""), (False, "broken")])
def test_a_finished_request_has_no_owner_any_more(finished: bool, error: str) -> None:
    async def check(engine: Engine) -> None:
        engine.pools[0].put_out(ear("a"), finished=finished, error=error)
        assert await engine.events("a") == ["ListenDecision"]
        engine.pools[0].put_out(ear("a"))
        assert await engine.events("a") == []

    running(check)


def test_a_closed_session_owns_nothing() -> None:
    async def check(engine: Engine) -> None:
        engine.orchestrator.dispatch(SessionCommand("a", CloseSession()))
        assert await engine.events("a") == ["SessionClosed"]
        engine.pools[0].put_out(ear("a"))
        assert await engine.events("a") == []
        assert engine.orchestrator.manager.slots_taken == 1

    running(check)


def test_nothing_is_left_of_a_model_that_cannot_close() -> None:
    async def check(engine: Engine) -> None:
        engine.models["a"].closes = False
        engine.orchestrator.dispatch(SessionCommand("a", CloseSession()))
        assert await engine.events("a") == ["ErrorEvent", "SessionClosed"]
        assert engine.pools[0].aborted == engine.pools[1].aborted == [ear("a")]
        assert engine.orchestrator.manager.slots_taken == 1

    running(check)


@pytest.mark.parametrize("gone", [False, True])
def test_a_slot_is_kept_until_no_stage_has_anything_of_its_session(gone: bool) -> None:
    async def check(engine: Engine) -> None:
        engine.pools[1].aborts = False
        engine.orchestrator.dispatch(SessionCommand("a", CloseSession()))
        (closed,) = await read_now(engine.links["a"])
        assert isinstance(closed, SessionClosed)
        assert (closed.reason, closed.slot_released) == ("client_close", False)
        engine.orchestrator.manager.reap()
        assert engine.orchestrator.manager.slots_taken == 2

        if gone:
            engine.pools[0].loses(0, (ear("a"),), "it died")
        else:
            engine.pools[1].aborts = True
        engine.now += 1.0
        engine.orchestrator.manager.reap()
        assert engine.orchestrator.manager.slots_taken == 1
        assert (ear("a") in engine.pools[1].aborted) is not gone
        engine.pools[1].aborts = True

    running(check)


def test_a_lost_worker_ends_the_sessions_it_carried_and_no_others() -> None:
    async def check(engine: Engine) -> None:
        parts: list[TurnChunk | TurnFailure] = []
        engine.orchestrator.dispatch(AddTurn("turn", ForwardTurn("turn", "in"), parts.append))
        engine.pools[0].loses(0, (ear("a"), "turn-0"), "it died")

        assert await engine.events("a") == ["ErrorEvent", "SessionExpired"]
        assert parts == [TurnFailure("it died")]
        assert await engine.events("b") == []
        engine.pools[0].put_out(ear("b"))
        assert await engine.events("b") == ["ListenDecision"]

    running(check)


def test_an_abandoned_open_leaves_no_session() -> None:
    async def check(engine: Engine) -> None:
        engine.orchestrator.dispatch(AbandonSession("a"))
        engine.orchestrator.dispatch(AbandonSession("never opened"))
        assert engine.orchestrator.manager.slots_taken == 1

    running(check)


def test_a_shutdown_is_told_to_every_session() -> None:
    async def check(engine: Engine) -> None:
        await engine.orchestrator.shutdown()
        assert await engine.events("a") == await engine.events("b") == ["SessionClosed"]

    running(check)
