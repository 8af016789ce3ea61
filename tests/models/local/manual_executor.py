"""An executor without threads: what is submitted waits until the test runs it."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ManualExecutor(Executor):
    def __init__(self) -> None:
        self._work: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self.closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            future.set_result(fn(*args, **kwargs))

        self._work.append((future.set_running_or_notify_cancel, run))
        return future

    def run(self) -> int:
        """Run all that waits and was not cancelled, and what that brings; return how many ran."""
        ran = 0
        while self._work:
            wanted, work = self._work.pop(0)
            if wanted():
                work()
                ran += 1
        return ran

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True
