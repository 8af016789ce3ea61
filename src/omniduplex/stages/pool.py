"""The replicas of one stage: which request goes where, and what happens when a worker dies."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.backlog import Backlog
from omniduplex.stages.client import OnOutput, StageClient
from omniduplex.stages.errors import StageStartError, StageUnavailable
from omniduplex.stages.factory import create_client
from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.telemetry.metrics import METRICS, ServerMetrics

logger = logging.getLogger(__name__)

OnReplicaDead = Callable[[int, tuple[str, ...], str], None]
"""Called with the replica's index, the ids of the requests lost with it, and the reason."""

MIN_BACKOFF_S = 0.1
MAX_BACKOFF_S = 5.0
# A worker that ran for longer did not die of being started.
STABLE_S = 30.0
RETIRE_TIMEOUT_S = 1.0
# Keys whose replica is remembered while none of their requests is open: far more than sessions
# live at once, and each input makes its key the newest.
MAX_KEYS = 4096


class _Replica:
    """One place for a worker, the requests it carries now, and when it was last started.

    `chosen_at` counts the choices of the pool: the higher, the later it was this one's turn.
    """

    def __init__(self, index: int, client: StageClient, now: float) -> None:
        self.index = index
        self.client = client
        self.started_at = now
        self.requests: set[str] = set()
        self.chosen_at = 0
        self.died = asyncio.Event()


class StagePool:
    """All workers of one stage; everything here happens on the loop of `start`.

    A request is open from its first input until it is released, aborted, answered with an output
    that is `finished` or an `error`, or lost with its worker. Its inputs all go to one replica, and
    so do those of all requests with the same `route_key`, as long as that replica lives.
    """

    def __init__(
        self,
        config: StageConfig,
        *,
        route_key: Callable[[str], str] = str,
        create: Callable[[StageConfig], StageClient] = create_client,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        metrics: ServerMetrics = METRICS,
    ) -> None:
        self.config = config
        self._route_key = route_key
        self._create = create
        self._sleep = sleep
        self._clock = clock
        self._metrics = metrics
        self._replicas = [
            _Replica(index, create(config), clock()) for index in range(config.replicas)
        ]
        self._routes: dict[str, _Replica] = {}
        self._keys: OrderedDict[str, _Replica] = OrderedDict()
        self._choices = itertools.count(1)
        self._supervisors: list[asyncio.Task[None]] = []

    @property
    def alive(self) -> bool:
        """Whether there is a replica that takes requests."""
        return any(replica.client.alive for replica in self._replicas)

    async def start(self, on_output: OnOutput, on_dead: OnReplicaDead) -> None:
        """Start all replicas; if one fails, none is left and `StageStartError` is raised."""
        self._on_output, self._on_dead = on_output, on_dead
        try:
            async with asyncio.TaskGroup() as group:
                for replica in self._replicas:
                    group.create_task(self._start(replica), name=self._task_name(replica))
        except BaseException as error:
            await self._stop_clients(RETIRE_TIMEOUT_S)
            if isinstance(error, BaseExceptionGroup):
                raise error.exceptions[0] from error
            raise
        self._supervisors = [
            asyncio.create_task(self._supervise(replica), name=self._task_name(replica))
            for replica in self._replicas
        ]

    def submit(self, message: StageMessage, backlog: Backlog | None = None) -> None:
        """Give an input to the replica of its request, or abort requests wherever they are.

        Raises:
            StageUnavailable: no replica is alive; for an abort never.
            StageOverloaded: too many inputs of this backlog wait; the request stays where it is.
        """
        if isinstance(message, StageAbort):
            self._abort(message)
            return
        self._submit_input(message, backlog)

    def release(self, request_id: str) -> None:
        """The request gets no more inputs; an id that is not open is ignored."""
        replica = self._routes.pop(request_id, None)
        if replica:
            replica.requests.discard(request_id)

    async def stop(self, timeout_s: float = 5.0) -> None:
        """End all workers; returns when there are none."""
        for task in self._supervisors:
            task.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        self._supervisors = []
        await self._stop_clients(timeout_s)

    def _submit_input(self, message: StageInput, backlog: Backlog | None) -> None:
        request_id = message.request_id
        key = self._route_key(request_id)
        replica = self._routes.get(request_id) or self._home(key) or self._least_busy()
        replica.client.submit(message, backlog)
        self._routes[request_id] = replica
        replica.requests.add(request_id)
        self._settle(key, replica)

    def _home(self, key: str) -> _Replica | None:
        """Where the requests of this key live, if a worker is there."""
        replica = self._keys.get(key)
        return replica if replica and replica.client.alive else None

    def _settle(self, key: str, replica: _Replica) -> None:
        if self._keys.get(key) is not replica:
            self._keys[key] = replica
            replica.chosen_at = next(self._choices)
        self._keys.move_to_end(key)
        if len(self._keys) > MAX_KEYS:
            self._keys.popitem(last=False)

    def _least_busy(self) -> _Replica:
        living = [replica for replica in self._replicas if replica.client.alive]
        if not living:
            raise StageUnavailable(f"no worker of stage {self.config.name!r} is running")
        return min(living, key=lambda replica: (len(replica.requests), replica.chosen_at))

    def _abort(self, message: StageAbort) -> None:
        for replica in self._replicas:
            ids = tuple(id_ for id_ in message.request_ids if id_ in replica.requests)
            if ids and replica.client.alive:
                replica.client.submit(StageAbort(ids))
        for request_id in message.request_ids:
            self.release(request_id)

    def _receive(self, output: StageOutput) -> None:
        if output.finished or output.error:
            self.release(output.request_id)
        self._on_output(output)

    def _lost(self, replica: _Replica, reason: str) -> None:
        request_ids = tuple(sorted(replica.requests))
        for request_id in request_ids:
            self.release(request_id)
        replica.died.set()
        self._on_dead(replica.index, request_ids, reason)

    async def _start(self, replica: _Replica) -> None:
        await replica.client.start(self._receive, lambda reason: self._lost(replica, reason))

    async def _supervise(self, replica: _Replica) -> None:
        delay = MIN_BACKOFF_S
        while True:
            await replica.died.wait()
            await replica.client.stop(RETIRE_TIMEOUT_S)
            if self._clock() - replica.started_at >= STABLE_S:
                delay = MIN_BACKOFF_S
            await self._sleep(delay)
            delay = min(2 * delay, MAX_BACKOFF_S)
            await self._restart(replica)

    async def _restart(self, replica: _Replica) -> None:
        replica.client = self._create(self.config)
        replica.died.clear()
        try:
            await self._start(replica)
        except StageStartError as error:
            logger.error("stage %s does not start again: %s", self.config.name, error)
            replica.died.set()
        else:
            self._metrics.stage_restarts.labels(stage=self.config.name).inc()
        replica.started_at = self._clock()

    async def _stop_clients(self, timeout_s: float) -> None:
        async with asyncio.TaskGroup() as group:
            for replica in self._replicas:
                group.create_task(replica.client.stop(timeout_s), name=self._task_name(replica))

    def _task_name(self, replica: _Replica) -> str:
        return f"stage-{self.config.name}-{replica.index}"
