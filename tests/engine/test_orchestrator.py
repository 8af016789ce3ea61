"""Turn requests over stages: in at the first, out of the last."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.engine.fake_pool import Pools, pipeline

from omniduplex.engine.messages import AbortRequests, AddRequest
from omniduplex.engine.orchestrator import Orchestrator
from omniduplex.stages.errors import StageStartError
from omniduplex.stages.messages import StageInput, StageOutput


class Turns:
    """A running orchestrator of two stages, and what its requests gave."""

    def __init__(self) -> None:
        self.pools = Pools()
        self.orchestrator = Orchestrator(pipeline(), make_pool=self.pools)
        self.outputs: list[StageOutput] = []

    def add(self, request_id: str = "r") -> None:
        message = AddRequest(StageInput(request_id, text="in"), self.outputs.append)
        self.orchestrator.dispatch(message)


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
        turns.pools[0].put_out("r")
        turns.pools[0].put_out("r", finished=True)
        assert [(m.text, m.final) for m in turns.pools[1].inputs] == [("out", False), ("out", True)]
        assert turns.outputs == []
        turns.pools[1].put_out("r")
        turns.pools[1].put_out("r", finished=True)

        assert [output.finished for output in turns.outputs] == [False, True]
        turns.pools[1].put_out("r")
        assert len(turns.outputs) == 2

    running(check)


@pytest.mark.parametrize("stage_id", [0, 1])
def test_an_error_ends_the_request_on_every_stage(stage_id: int) -> None:
    def check(turns: Turns) -> None:
        turns.add()
        turns.pools[stage_id].put_out("r", error="broken")
        turns.pools[1].put_out("r", finished=True)

        assert [output.error for output in turns.outputs] == ["broken"]
        assert [turns.pools[stage].aborted for stage in (0, 1)] == [["r"], ["r"]]

    running(check)


def test_an_aborted_request_gives_nothing_more() -> None:
    def check(turns: Turns) -> None:
        turns.add()
        turns.orchestrator.dispatch(AbortRequests(("r",)))
        turns.pools[0].put_out("r")
        turns.pools[1].put_out("r", finished=True)

        assert turns.outputs == []
        assert turns.pools[1].inputs == []

    running(check)


@pytest.mark.parametrize("stage_id", [0, 1])
def test_a_stage_that_takes_nothing_fails_the_request(stage_id: int) -> None:
    def check(turns: Turns) -> None:
        turns.pools[stage_id].takes = False
        turns.add()
        if stage_id == 1:
            turns.pools[0].put_out("r")
        assert [output.error for output in turns.outputs] == ["no worker"]

    running(check)


def test_a_lost_worker_fails_its_requests_and_no_others() -> None:
    def check(turns: Turns) -> None:
        turns.add("lost")
        turns.add("kept")
        turns.pools[0].loses(0, ("lost",), "it died")
        assert [(o.request_id, o.error) for o in turns.outputs] == [("lost", "it died")]

        turns.pools[1].put_out("kept", finished=True)
        assert turns.outputs[-1].request_id == "kept"

    running(check)


def test_a_reader_that_breaks_harms_no_other_request() -> None:
    def check(turns: Turns) -> None:
        def breaks(output: StageOutput) -> None:
            raise RuntimeError("its loop is gone")

        turns.orchestrator.dispatch(AddRequest(StageInput("broken"), breaks))
        turns.add()
        turns.pools[1].put_out("broken")
        turns.pools[1].put_out("r", finished=True)
        assert len(turns.outputs) == 1

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
