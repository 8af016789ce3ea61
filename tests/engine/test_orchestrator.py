"""Turns over stages: what their plans say goes in, what comes out is theirs to read."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.engine.fake_pool import Pools, pipeline
from tests.engine.stage_models import BrokenTurn, ForwardTurn

from omniduplex.engine.messages import AbortTurn, AddTurn
from omniduplex.engine.orchestrator import Orchestrator
from omniduplex.engine.turns import TurnChunk, TurnFailure
from omniduplex.stages.errors import StageStartError

Part = TurnChunk | TurnFailure


class Turns:
    """A running orchestrator of two stages, and what its turns gave."""

    def __init__(self) -> None:
        self.pools = Pools()
        self.orchestrator = Orchestrator(pipeline(), make_pool=self.pools)
        self.parts: list[Part] = []

    def add(self, turn_id: str = "r") -> None:
        self.orchestrator.dispatch(AddTurn(turn_id, ForwardTurn(turn_id, "in"), self.parts.append))

    @property
    def failures(self) -> list[str]:
        return [part.reason for part in self.parts if isinstance(part, TurnFailure)]

    @property
    def ends(self) -> list[bool]:
        return [part.finished for part in self.parts if isinstance(part, TurnChunk)]


def running(check: Callable[[Turns], Awaitable[None] | None]) -> None:
    async def main() -> None:
        turns = Turns()
        await turns.orchestrator.start()
        result = check(turns)
        if result is not None:
            await result
        await turns.orchestrator.shutdown()
        assert not turns.orchestrator.alive

    asyncio.run(main())


def test_outputs_go_from_stage_to_stage_and_out() -> None:
    def check(turns: Turns) -> None:
        turns.add()
        assert [message.text for message in turns.pools[0].inputs] == ["in"]
        turns.pools[0].put_out("r-0")
        turns.pools[0].put_out("r-0", finished=True)
        assert [(m.text, m.final) for m in turns.pools[1].inputs] == [("out", False), ("out", True)]
        assert turns.parts == []
        turns.pools[1].put_out("r-1")
        turns.pools[1].put_out("r-1", finished=True)

        assert turns.ends == [False, True]
        assert turns.orchestrator.active_turns == 0
        turns.pools[1].put_out("r-1")
        assert len(turns.parts) == 2

    running(check)


@pytest.mark.parametrize("stage_id", [0, 1])
def test_an_error_ends_the_turn_on_every_stage(stage_id: int) -> None:
    def check(turns: Turns) -> None:
        turns.add()
        turns.pools[0].put_out("r-0")
        turns.pools[stage_id].put_out(f"r-{stage_id}", error="broken")
        turns.pools[1].put_out("r-1", finished=True)

        assert turns.failures == ["broken"]
        assert turns.ends == []
        assert [turns.pools[stage].aborted for stage in (0, 1)] == [["r-0", "r-1"]] * 2

    running(check)


def test_an_aborted_turn_gives_nothing_more() -> None:
    def check(turns: Turns) -> None:
        turns.add()
        turns.orchestrator.dispatch(AbortTurn("r"))
        turns.orchestrator.dispatch(AbortTurn("never added"))
        turns.pools[0].put_out("r-0")

        assert turns.parts == []
        assert turns.pools[0].aborted == ["r-0"]
        assert turns.pools[1].inputs == []
        assert turns.orchestrator.active_turns == 0

    running(check)


@pytest.mark.parametrize("stage_id", [0, 1])
def test_a_stage_that_takes_nothing_fails_the_turn(stage_id: int) -> None:
    def check(turns: Turns) -> None:
        turns.pools[stage_id].takes = False
        turns.add()
        if stage_id == 1:
            turns.pools[0].put_out("r-0")
        assert turns.failures == ["no worker"]

    running(check)


def test_a_lost_worker_fails_its_turns_and_no_others() -> None:
    def check(turns: Turns) -> None:
        turns.add("lost")
        turns.add("kept")
        turns.pools[0].loses(0, ("lost-0",), "it died")
        assert turns.failures == ["it died"]

        turns.pools[0].put_out("kept-0", finished=True)
        turns.pools[1].put_out("kept-1", finished=True)
        assert turns.ends == [True]

    running(check)


def test_a_turn_that_cannot_be_read_fails_alone() -> None:
    def check(turns: Turns) -> None:
        broken = BrokenTurn("broken", "in")
        turns.orchestrator.dispatch(AddTurn("broken", broken, turns.parts.append))
        turns.add()
        turns.pools[0].put_out("broken-0")
        turns.pools[0].put_out("r-0", finished=True)
        turns.pools[1].put_out("r-1", finished=True)

        assert turns.failures == ["the turn broke; the server's log says why"]
        assert turns.ends == [True]

    running(check)


def test_a_reader_that_breaks_harms_no_other_turn() -> None:
    def check(turns: Turns) -> None:
        def breaks(part: Part) -> None:
            raise RuntimeError("its loop is gone")

        turns.orchestrator.dispatch(AddTurn("broken", ForwardTurn("broken", "in"), breaks))
        turns.add()
        turns.pools[0].put_out("broken-0")
        turns.pools[0].put_out("r-0")
        turns.pools[1].put_out("broken-1")
        turns.pools[1].put_out("r-1", finished=True)

        assert turns.ends == [True]
        assert turns.orchestrator.active_turns == 0

    running(check)


def test_the_id_of_a_running_turn_is_refused() -> None:
    def check(turns: Turns) -> None:
        turns.add()
        turns.add()
        assert turns.failures == ["turn 'r' is running"]
        assert turns.orchestrator.active_turns == 1

    running(check)


def test_a_shutdown_is_told_to_every_turn() -> None:
    async def check(turns: Turns) -> None:
        turns.add("a")
        turns.add("b")
        await turns.orchestrator.shutdown()
        assert turns.failures == ["the engine is shutting down"] * 2

    running(check)


def test_a_message_for_nobody_is_a_bug() -> None:
    def check(turns: Turns) -> None:
        with pytest.raises(TypeError, match="str"):
            turns.orchestrator.dispatch("hello")

    running(check)


def test_a_stage_that_does_not_start_stops_the_others() -> None:
    async def main() -> None:
        turns = Turns()
        turns.pools[1].starts = False
        with pytest.raises(StageStartError):
            await turns.orchestrator.start()
        assert not turns.pools[0].running

    asyncio.run(main())
