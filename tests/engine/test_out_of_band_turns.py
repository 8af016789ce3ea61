"""Responses beside a conversation, on the stages that the conversation has: two of them here."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.engine.duplex.session.driver import BY_HAND
from tests.engine.duplex.session.scripted_model import ScriptedPlugin
from tests.engine.duplex.session.shell import read_now
from tests.engine.fake_pool import Pools, pipeline
from tests.engine.stage_models import BrokenTurn, ForwardPlugin

from omniduplex.engine.duplex.link import DuplexSessionLink, SessionCommand
from omniduplex.engine.duplex_orchestrator import DuplexOrchestrator
from omniduplex.engine.turn_plugin import Turn
from omniduplex.engine.turns import TurnRequest
from omniduplex.protocol.duplex import (
    CancelResponse,
    CloseSession,
    ContentPart,
    CreateResponse,
    DuplexCommand,
    DuplexEvent,
    ErrorEvent,
    Heartbeat,
    ItemInput,
    ResponseCreated,
    ResponseDone,
    ResponseOptions,
    TextDelta,
)


class BrokenPlugin(ForwardPlugin):
    def create_turn(self, turn_id: str, request: TurnRequest) -> Turn:
        return BrokenTurn(turn_id, "")


class Engine:
    """A running orchestrator with one session."""

    def __init__(self, plugin: type[ForwardPlugin]) -> None:
        self.pools = Pools()
        described = pipeline()
        self.orchestrator = DuplexOrchestrator(
            described, ScriptedPlugin(), turns=plugin(described), make_pool=self.pools
        )
        self.link = DuplexSessionLink("a", described.duplex_session)

    def send(self, command: DuplexCommand) -> None:
        self.link.reserve(command)
        self.orchestrator.dispatch(SessionCommand("a", command))

    def asks_beside(self, text: str = "in") -> str:
        """A response out of band is wanted; the id of its turn."""
        said = ItemInput(content=(ContentPart(type="input_text", text=text),))
        options = ResponseOptions(
            conversation="none", input=(said,), output_modalities=("text",), instructions=""
        )
        self.send(CreateResponse(response=options))
        return self.pools[0].inputs[-1].request_id.removesuffix("-0")

    async def events(self) -> list[DuplexEvent]:
        return await read_now(self.link)

    async def endings(self) -> list[str]:
        """How the responses ended that did since the last look."""
        return [e.response.status for e in await self.events() if isinstance(e, ResponseDone)]


def running(
    check: Callable[[Engine], Awaitable[None]], plugin: type[ForwardPlugin] = ForwardPlugin
) -> None:
    async def main() -> None:
        engine = Engine(plugin)
        await engine.orchestrator.start()
        await engine.orchestrator.manager.open(engine.link, BY_HAND)
        await engine.events()
        await check(engine)
        await engine.orchestrator.shutdown()
        assert engine.orchestrator.active_turns == 0

    asyncio.run(main())


def test_a_turn_goes_through_the_stages_and_comes_back_as_a_response() -> None:
    async def check(engine: Engine) -> None:
        turn = engine.asks_beside("say this")
        assert engine.pools[0].inputs[-1].text == "say this"
        engine.pools[0].put_out(f"{turn}-0", finished=True)
        engine.pools[1].put_out(f"{turn}-1")
        engine.pools[1].put_out(f"{turn}-1", finished=True)

        events = await engine.events()
        assert [e.delta for e in events if isinstance(e, TextDelta)] == ["out", "out"]
        assert [e.response.status for e in events if isinstance(e, ResponseDone)] == ["completed"]
        assert engine.orchestrator.active_turns == 0

    running(check)


def test_a_cancel_stops_its_turn_on_every_stage() -> None:
    async def check(engine: Engine) -> None:
        turn, other = engine.asks_beside(), engine.asks_beside()
        created = [e for e in await engine.events() if isinstance(e, ResponseCreated)]
        engine.send(CancelResponse(response_id=created[0].response_id))
        assert await engine.endings() == ["cancelled"]
        assert f"{turn}-0" in engine.pools[0].aborted
        assert engine.orchestrator.active_turns == 1

        engine.pools[0].put_out(f"{turn}-0", finished=True)
        assert await engine.events() == []
        engine.pools[0].put_out(f"{other}-0", finished=True)
        engine.pools[1].put_out(f"{other}-1", finished=True)
        assert await engine.endings() == ["completed"]

    running(check)


def test_a_turn_that_a_stage_cannot_take_fails_and_its_session_goes_on() -> None:
    async def check(engine: Engine) -> None:
        engine.pools[0].takes = False
        engine.send(
            CreateResponse(
                response=ResponseOptions(
                    conversation="none",
                    input=(ItemInput(content=(ContentPart(type="input_text", text="in"),)),),
                )
            )
        )
        assert await engine.endings() == ["failed"]
        engine.send(Heartbeat())
        assert len(await engine.events()) == 1

    running(check)


@pytest.mark.parametrize("how", ["lost", "error"])
def test_a_turn_whose_stage_breaks_fails_and_its_session_goes_on(how: str) -> None:
    async def check(engine: Engine) -> None:
        turn = engine.asks_beside()
        if how == "lost":
            engine.pools[0].loses(0, (f"{turn}-0",), "it died")
        else:
            engine.pools[0].put_out(f"{turn}-0", error="it died")
        events = await engine.events()
        assert [e.error.message for e in events if isinstance(e, ErrorEvent)] == ["it died"]
        assert [e.response.status for e in events if isinstance(e, ResponseDone)] == ["failed"]
        assert engine.orchestrator.manager.slots_taken == 1

    running(check)


def test_a_turn_that_breaks_fails_and_its_session_goes_on() -> None:
    async def check(engine: Engine) -> None:
        turn = engine.asks_beside()
        engine.pools[0].put_out(f"{turn}-0")
        assert await engine.endings() == ["failed"]
        assert engine.orchestrator.manager.slots_taken == 1

    running(check, BrokenPlugin)


def test_a_session_that_is_closed_leaves_no_turn() -> None:
    async def check(engine: Engine) -> None:
        turns = [engine.asks_beside(), engine.asks_beside()]
        engine.send(CloseSession())
        assert await engine.endings() == ["cancelled", "cancelled"]
        assert engine.orchestrator.active_turns == 0
        assert {f"{turn}-0" for turn in turns} <= set(engine.pools[0].aborted)

    running(check)


def test_a_shutdown_ends_each_response_once() -> None:
    async def check(engine: Engine) -> None:
        engine.asks_beside()
        await engine.orchestrator.shutdown()
        assert await engine.endings() == ["cancelled"]

    running(check)
