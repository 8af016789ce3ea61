import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.stages.support import TIMEOUT_S, Listener, process_is_gone, stage
from tests.stages.worker_models import BrokenModel, EchoModel, HangingModel

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.backlog import Backlog
from omniduplex.stages.client import (
    OnDead,
    OnOutput,
    StageClient,
    ThreadStageClient,
)
from omniduplex.stages.errors import StageOverloaded, StageStartError, StageUnavailable
from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.stages.pool import StagePool
from omniduplex.stages.process_client import ProcessStageClient
from omniduplex.telemetry.metrics import ServerMetrics

pytestmark = pytest.mark.anyio


class FakeClient(ThreadStageClient):
    """A client without a worker: it remembers what it is given, and the test plays the worker."""

    def __init__(self, config: StageConfig, *, start_error: str = "") -> None:
        super().__init__(config)
        self.start_error = start_error
        self.submitted: list[StageMessage] = []
        self.stops = 0
        self.overloaded = False

    async def start(self, on_output: OnOutput, on_dead: OnDead) -> None:
        if self.start_error:
            raise StageStartError(self.start_error)
        self.on_output, self.on_dead = on_output, on_dead
        self._alive = True

    def submit(self, message: StageMessage, backlog: Backlog | None = None) -> None:
        if not self._alive:
            raise StageUnavailable("not running")
        if self.overloaded:
            raise StageOverloaded("too much")
        self.submitted.append(message)

    async def stop(self, timeout_s: float = 5.0) -> None:
        self._alive = False
        self.stops += 1

    def die(self, reason: str = "killed") -> None:
        self._alive = False
        self.on_dead(reason)


class Clock:
    """Time that passes only while somebody sleeps; a sleep waits for the test's permission."""

    def __init__(self) -> None:
        self.now = 0.0
        self._slept: asyncio.Queue[float] = asyncio.Queue()
        self._go = asyncio.Semaphore(0)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self._slept.put_nowait(seconds)
        await self._go.acquire()
        self.now += seconds

    async def backoff(self) -> float:
        """How long the pool wants to sleep; it goes on at once."""
        async with asyncio.timeout(TIMEOUT_S):
            seconds = await self._slept.get()
        self._go.release()
        return seconds


class Bench:
    """A pool of fake clients on a fake clock."""

    def __init__(self, replicas: int = 1, route_key: Callable[[str], str] = str) -> None:
        self.clients: list[FakeClient] = []
        self.start_errors: list[str] = []
        self.clock = Clock()
        self.listener = Listener()
        self.metrics = ServerMetrics(CollectorRegistry())
        self._made = asyncio.Semaphore(0)
        self.pool = StagePool(
            stage(EchoModel, replicas=replicas),
            route_key=route_key,
            create=self._create,
            sleep=self.clock.sleep,
            clock=self.clock,
            metrics=self.metrics,
        )

    def _create(self, config: StageConfig) -> StageClient:
        error = self.start_errors.pop(0) if self.start_errors else ""
        self.clients.append(FakeClient(config, start_error=error))
        self._made.release()
        return self.clients[-1]

    async def start(self) -> StagePool:
        await self.pool.start(self.listener.on_output, self.listener.on_replica_dead)
        for _ in self.clients:
            await self._made.acquire()
        return self.pool

    async def next_client(self) -> FakeClient:
        async with asyncio.timeout(TIMEOUT_S):
            await self._made.acquire()
        return self.clients[-1]

    def ids_at(self, index: int) -> list[Any]:
        return [getattr(m, "request_id", None) for m in self.clients[index].submitted]


async def test_a_request_stays_on_its_replica_and_new_ones_go_where_fewest_are_open() -> None:
    bench = Bench(replicas=2)
    pool = await bench.start()

    for request_id in ("a", "b", "a", "c", "b", "c", "a"):
        pool.submit(StageInput(request_id))

    assert bench.ids_at(0) == ["a", "a", "c", "c", "a"]
    assert bench.ids_at(1) == ["b", "b"]
    await pool.stop()


def finish(bench: Bench) -> None:
    bench.clients[0].on_output(StageOutput("a", finished=True))


def fail(bench: Bench) -> None:
    bench.clients[0].on_output(StageOutput("a", error="no"))


@pytest.mark.parametrize(
    "end",
    [
        lambda bench: bench.pool.release("a"),
        lambda bench: bench.pool.submit(StageAbort(("a", "unknown"))),
        finish,
        fail,
    ],
    ids=["release", "abort", "finished", "error"],
)
async def test_the_place_of_a_request_that_ended_is_free(end: Callable[[Bench], None]) -> None:
    bench = Bench(replicas=2)
    pool = await bench.start()
    pool.submit(StageInput("a"))
    pool.submit(StageInput("b"))

    end(bench)
    pool.submit(StageInput("c"))

    assert bench.ids_at(0)[-1] == "c"
    await pool.stop()


async def test_an_abort_goes_only_to_the_replicas_that_carry_its_requests() -> None:
    bench = Bench(replicas=3)
    pool = await bench.start()
    for request_id in ("a", "b", "c"):
        pool.submit(StageInput(request_id))

    pool.submit(StageAbort(("a", "c", "unknown")))

    assert [client.submitted[1:] for client in bench.clients] == [
        [StageAbort(("a",))],
        [],
        [StageAbort(("c",))],
    ]
    await pool.stop()


async def test_an_input_refused_as_too_much_does_not_open_a_request() -> None:
    bench = Bench(replicas=2)
    pool = await bench.start()
    bench.clients[0].overloaded = True
    with pytest.raises(StageOverloaded):
        pool.submit(StageInput("a"))
    bench.clients[0].overloaded = False

    pool.submit(StageInput("b"))

    assert bench.ids_at(0) == ["b"]
    await pool.stop()


def first_letter(request_id: str) -> str:
    return request_id[0]


async def test_requests_with_one_key_share_a_replica_even_when_none_is_open() -> None:
    bench = Bench(replicas=2, route_key=first_letter)
    pool = await bench.start()

    for request_id in ("a1", "b1", "a2", "a3"):
        pool.submit(StageInput(request_id))
    for request_id in ("a1", "a2", "a3"):
        pool.release(request_id)
    for request_id in ("b2", "b3", "a4"):
        pool.submit(StageInput(request_id))

    assert bench.ids_at(0) == ["a1", "a2", "a3", "a4"]
    assert bench.ids_at(1) == ["b1", "b2", "b3"]
    await pool.stop()


async def test_idle_keys_are_spread_in_turn() -> None:
    bench = Bench(replicas=2, route_key=first_letter)
    pool = await bench.start()

    for request_id in ("a1", "b1", "c1", "d1"):
        pool.submit(StageInput(request_id))
        pool.release(request_id)

    assert bench.ids_at(0) == ["a1", "c1"]
    assert bench.ids_at(1) == ["b1", "d1"]
    await pool.stop()


async def test_a_key_whose_replica_died_moves_to_one_that_lives_and_stays_there() -> None:
    bench = Bench(replicas=2, route_key=first_letter)
    pool = await bench.start()
    for request_id in ("a1", "b1"):
        pool.submit(StageInput(request_id))
    bench.clients[0].die()

    pool.submit(StageInput("a2"))
    await bench.clock.backoff()
    revived = await bench.next_client()
    pool.submit(StageInput("a3"))
    pool.submit(StageInput("c1"))

    assert bench.ids_at(1) == ["b1", "a2", "a3"]
    assert revived.submitted == [StageInput("c1")]
    await pool.stop()


async def test_only_the_newest_keys_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omniduplex.stages.pool.MAX_KEYS", 2)
    bench = Bench(replicas=2, route_key=first_letter)
    pool = await bench.start()
    for request_id in ("a1", "b1", "a2", "c1"):
        pool.submit(StageInput(request_id))
        pool.release(request_id)

    pool.submit(StageInput("a3"))
    pool.submit(StageInput("b2"))

    # b was forgotten for c, a was not, as it had spoken since.
    assert bench.ids_at(0) == ["a1", "a2", "c1", "a3"]
    assert bench.ids_at(1) == ["b1", "b2"]
    await pool.stop()


async def test_a_dead_replica_reports_its_requests_and_the_others_go_on() -> None:
    bench = Bench(replicas=2)
    pool = await bench.start()
    for request_id in ("a", "b", "c"):
        pool.submit(StageInput(request_id))

    bench.clients[0].die("out of memory")

    assert await bench.listener.death() == (0, ("a", "c"), "out of memory")
    assert pool.alive
    pool.submit(StageInput("d"))
    assert bench.ids_at(1) == ["b", "d"]
    await pool.stop()


async def test_a_pool_without_a_live_replica_is_unavailable_until_it_is_back() -> None:
    bench = Bench()
    pool = await bench.start()
    pool.submit(StageInput("a"))
    bench.clients[0].die()

    assert not pool.alive
    with pytest.raises(StageUnavailable, match="no worker of stage 'test'"):
        pool.submit(StageInput("b"))
    pool.submit(StageAbort(("a",)))

    assert await bench.clock.backoff() == 0.1
    second = await bench.next_client()
    pool.submit(StageInput("b"))
    assert second.submitted == [StageInput("b")]
    assert bench.clients[0].stops == 1
    assert b'omniduplex_stage_restarts_total{stage="test"} 1.0' in bench.metrics.exposition()
    await pool.stop()


async def test_restarts_that_fail_wait_longer_and_longer_but_not_for_ever() -> None:
    bench = Bench()
    pool = await bench.start()
    bench.start_errors = ["no memory"] * 8

    bench.clients[0].die()
    waits = [await bench.clock.backoff() for _ in range(9)]

    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])
    for _ in range(9):
        await bench.next_client()
    assert pool.alive
    assert bench.listener.deaths_left == 1
    assert b'omniduplex_stage_restarts_total{stage="test"} 1.0' in bench.metrics.exposition()
    await pool.stop()


async def test_a_worker_that_keeps_dying_young_is_restarted_ever_more_slowly() -> None:
    bench = Bench()
    pool = await bench.start()
    client = bench.clients[0]
    waits = []
    for lifetime_s in (0.0, 1.0, 29.0, 30.0, 0.0):
        bench.clock.now += lifetime_s
        client.die()
        waits.append(await bench.clock.backoff())
        client = await bench.next_client()

    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.1, 0.2])
    await pool.stop()


async def test_a_start_that_fails_stops_the_replicas_that_did_start() -> None:
    bench = Bench(replicas=2)
    bench.clients[1].start_error = "no memory"

    with pytest.raises(StageStartError, match="no memory"):
        await bench.start()

    assert not bench.pool.alive
    assert bench.clients[0].stops == 1


async def test_stop_while_a_restart_waits_ends_it() -> None:
    bench = Bench()
    pool = await bench.start()
    bench.clients[0].die()
    await bench.listener.death()

    await pool.stop()

    assert not pool.alive
    assert len(bench.clients) == 1


async def test_a_killed_process_comes_back_and_works() -> None:
    clients: list[StageClient] = []
    listener, backoff, started = Listener(), Clock(), asyncio.Semaphore(0)

    class AnnouncedClient(ProcessStageClient):
        async def start(self, on_output: OnOutput, on_dead: OnDead) -> None:
            await super().start(on_output, on_dead)
            started.release()

    def create(config: StageConfig) -> StageClient:
        clients.append(AnnouncedClient(config))
        return clients[-1]

    pool = StagePool(stage(EchoModel), create=create, sleep=backoff.sleep)
    await pool.start(listener.on_output, listener.on_replica_dead)
    pool.submit(StageInput("a", text="one"))
    assert (await listener.output()).text == "one"
    killed = clients[0].pid
    assert killed is not None

    os.kill(killed, signal.SIGKILL)

    assert await listener.death() == (0, ("a",), "the worker was killed by SIGKILL")
    assert await backoff.backoff() == 0.1
    async with asyncio.timeout(TIMEOUT_S):
        await started.acquire()  # the first start
        await started.acquire()
    pool.submit(StageInput("b", text="two"))
    assert (await listener.output()).text == "two"
    assert clients[1].pid not in (None, killed)
    await pool.stop()
    assert listener.deaths_left == 0
    assert all(client.pid is not None and process_is_gone(client.pid) for client in clients)


async def test_a_process_that_hangs_is_replaced() -> None:
    listener, backoff, started = Listener(), Clock(), asyncio.Semaphore(0)
    clients: list[ProcessStageClient] = []

    class AnnouncedClient(ProcessStageClient):
        async def start(self, on_output: OnOutput, on_dead: OnDead) -> None:
            await super().start(on_output, on_dead)
            started.release()

    def create(config: StageConfig) -> StageClient:
        clients.append(AnnouncedClient(config))
        return clients[-1]

    config = stage(HangingModel, hang_timeout_s=0.05)
    pool = StagePool(config, create=create, sleep=backoff.sleep)
    await pool.start(listener.on_output, listener.on_replica_dead)
    await started.acquire()

    pool.submit(StageInput("a"))

    assert await listener.death() == (0, ("a",), "the worker did not answer for 0.05 s")
    await backoff.backoff()
    async with asyncio.timeout(TIMEOUT_S):
        await started.acquire()
    assert pool.alive
    assert clients[0].pid is not None
    assert process_is_gone(clients[0].pid)
    await pool.stop()
    assert listener.deaths_left == 0


async def test_the_message_of_a_model_that_does_not_load_reaches_the_pool() -> None:
    pool = StagePool(stage(BrokenModel, replicas=2))

    with pytest.raises(StageStartError, match="the weights are not there"):
        await pool.start(lambda output: None, lambda index, ids, reason: None)

    assert not pool.alive
