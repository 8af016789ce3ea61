"""What a runner or a manager stands on in tests: a port, an executor, and a reader of events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

from omniduplex.engine.duplex.contracts import DuplexStagePort, Submit
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex.output_buffer import EndOfEvents
from omniduplex.engine.messages import AbortTurn, AddTurn
from omniduplex.protocol.duplex import DuplexEvent
from omniduplex.stages.errors import StageUnavailable

P = ParamSpec("P")
T = TypeVar("T")


class FakePort(DuplexStagePort):
    """Remembers what was submitted and aborted; refuses what it is told to."""

    def __init__(self) -> None:
        self.submitted: list[tuple[str, str]] = []
        self.aborted: list[str] = []
        self.released: list[str] = []
        self.has_released = asyncio.Event()
        self.breaks_at: set[str] = set()
        """`abort` or `release`: what no stage can do."""
        self.refuses: set[str] = set()
        self.on_submit: Callable[[str], None] = lambda name: None
        self.turns: dict[str, AddTurn] = {}
        """Those that run beside their sessions."""

    def submit(self, session_id: str, work: Submit) -> None:
        name = work.message.request_id
        if name in self.refuses:
            raise StageUnavailable(f"no worker for {name}")
        self.submitted.append((session_id, name))
        self.on_submit(name)

    def abort(self, request_ids: tuple[str, ...]) -> None:
        self._break_at("abort")
        self.aborted += request_ids

    def release(self, session_id: str) -> None:
        self._break_at("release")
        self.released.append(session_id)
        self.has_released.set()

    def _break_at(self, work: str) -> None:
        if work in self.breaks_at:
            raise RuntimeError(f"no way to {work}")

    def run_turn(self, message: AddTurn | AbortTurn) -> None:
        if isinstance(message, AddTurn):
            self.turns[message.turn_id] = message
        else:
            self.turns.pop(message.turn_id, None)


class HandExecutor(Executor):
    """Runs what waits when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[object], Callable[[], object]]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))  # type: ignore[arg-type]
        return future

    def run(self) -> None:
        """Do all work that waits."""
        while self.waiting:
            future, work = self.waiting.pop(0)
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)


class FakeTimer:
    """A call that a fake clock will make."""

    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """Time that goes by when the test says so; what is due then is called."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[FakeTimer] = []

    def time(self) -> float:
        return self.now

    @property
    def waiting(self) -> list[FakeTimer]:
        return [timer for timer in self._timers if not timer.cancelled]

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        self._timers.append(FakeTimer(self.now + delay_s, callback))
        return self._timers[-1]

    def passes(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.waiting if timer.at <= end]:
            timer = min(due, key=lambda one: one.at)
            self.now = max(self.now, timer.at)
            timer.cancel()
            timer.callback()
        self.now = end


async def read_now(link: DuplexSessionLink) -> list[DuplexEvent]:
    """All that a reader finds now, up to the closing event."""
    events: list[DuplexEvent] = []
    while True:
        reader = asyncio.ensure_future(link.output.get())
        await asyncio.sleep(0)
        if not reader.done():
            reader.cancel()
            return events
        if isinstance(reader.exception(), EndOfEvents):
            return events
        events.append(reader.result())


def read(link: DuplexSessionLink) -> list[DuplexEvent]:
    """As `read_now`, where no loop runs."""
    return asyncio.run(read_now(link))
