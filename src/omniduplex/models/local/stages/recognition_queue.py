"""Who may use the recogniser's thread next: what ears wait for comes before recordings."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec

P = ParamSpec("P")


class RecognitionQueue:
    """Puts two ranks of work into one pool.

    Work that can wait goes to the pool one piece at a time, and only while nothing else is there:
    whatever else comes waits for one such piece at most.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._urgent = 0
        self._patient: deque[Callable[[], None]] = deque()
        self._patient_runs = False
        self._closed = False

    def submit(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
        """Run this as soon as the pool can."""
        with self._lock:
            self._urgent += 1
            future = self._pool.submit(work, *args, **kwargs)
        future.add_done_callback(self._urgent_ended)
        return future

    def submit_patient(self, work: Callable[[], None]) -> None:
        """Run this when nothing urgent waits or runs, in the order of these calls."""
        with self._lock:
            self._patient.append(work)
            self._admit()

    def close(self) -> None:
        """Put no more patient work into the pool; the pool itself is the caller's to shut down."""
        with self._lock:
            self._closed = True
            self._patient.clear()

    def _urgent_ended(self, _: Future[None]) -> None:
        with self._lock:
            self._urgent -= 1
            self._admit()

    def _run_patient(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._patient_runs = False
                self._admit()

    def _admit(self) -> None:
        if self._patient and not (self._urgent or self._patient_runs or self._closed):
            self._patient_runs = True
            self._pool.submit(self._run_patient, self._patient.popleft())
