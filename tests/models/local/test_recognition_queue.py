"""Which work the recogniser's thread gets next."""

from functools import partial

from tests.models.local.manual_executor import ManualExecutor

from omniduplex.models.local.stages.recognition_queue import RecognitionQueue


class Line:
    """A queue over a pool that runs when told to, and what ran, in order."""

    def __init__(self) -> None:
        self.pool = ManualExecutor()
        self.queue = RecognitionQueue(self.pool)
        self.ran: list[str] = []

    def urgent(self, name: str) -> None:
        self.queue.submit(self.ran.append, name)

    def patient(self, name: str) -> None:
        self.queue.submit_patient(partial(self.ran.append, name))


def test_what_is_urgent_waits_for_one_patient_piece_at_most() -> None:
    line = Line()
    for name in ("p1", "p2", "p3"):
        line.patient(name)
    line.urgent("u1")
    line.urgent("u2")
    line.pool.run()
    assert line.ran == ["p1", "u1", "u2", "p2", "p3"]


def test_patient_work_comes_after_urgent_work_that_comes_later() -> None:
    line = Line()
    line.queue.submit(line.urgent, "u1")
    line.patient("p1")
    line.pool.run()
    assert line.ran == ["u1", "p1"]


def test_urgent_work_that_is_cancelled_holds_nothing_up() -> None:
    line = Line()
    future = line.queue.submit(line.ran.append, "u1")
    line.patient("p1")
    assert future.cancel()
    line.pool.run()
    assert line.ran == ["p1"]


def test_a_closed_queue_admits_no_patient_work() -> None:
    line = Line()
    line.urgent("u1")
    line.patient("p1")
    line.queue.close()
    line.patient("p2")
    line.pool.run()
    assert line.ran == ["u1"]
