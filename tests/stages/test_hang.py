"""When a worker counts as hanging: after the time it has, and not because we were held up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.stages.hang import PARTS, HangWatch


class Alarm:
    def __init__(self, at: float, ring: Callable[[], None]) -> None:
        self.at = at
        self.ring = ring
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Worker:
    """A watch over nobody: the test gives, answers, and lets time pass."""

    def __init__(self, timeout_s: float = 4.0) -> None:
        self.now = 0.0
        self.asked = 0
        self.hangs = 0
        self._alarms: list[Alarm] = []
        self.watch = HangWatch(
            timeout_s, call_later=self._call_later, ask=self._ask, on_hang=self._hang
        )

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [alarm for alarm in self.alarms if alarm.at <= end]:
            alarm = min(due, key=lambda alarm: alarm.at)
            self._alarms.remove(alarm)
            self.now = max(self.now, alarm.at)
            alarm.ring()
        self.now = end

    def be_held_up(self, seconds: float) -> None:
        """This process does nothing for a while; then what is due happens, once."""
        self.now += seconds
        due = [alarm for alarm in self.alarms if alarm.at <= self.now]
        for alarm in due:
            self._alarms.remove(alarm)
            alarm.ring()

    @property
    def alarms(self) -> list[Alarm]:
        return [alarm for alarm in self._alarms if not alarm.cancelled]

    def _call_later(self, seconds: float, ring: Callable[[], None]) -> Alarm:
        alarm = Alarm(self.now + seconds, ring)
        self._alarms.append(alarm)
        return alarm

    def _ask(self) -> None:
        self.asked += 1

    def _hang(self, reason: str) -> None:
        self.hangs += 1


def test_a_worker_that_does_not_answer_in_time_hangs() -> None:
    worker = Worker(timeout_s=4)
    worker.watch.given()
    worker.pass_time(3.9)
    assert worker.hangs == 0

    worker.pass_time(0.2)

    assert worker.hangs == 1


def test_a_worker_with_nothing_to_do_is_not_asked() -> None:
    worker = Worker()
    worker.watch.given()
    worker.watch.answered()

    worker.pass_time(1000)

    assert (worker.asked, worker.hangs, worker.alarms) == (1, 0, [])


def test_what_is_given_after_a_question_is_asked_about_with_the_next() -> None:
    worker = Worker(timeout_s=4)
    worker.watch.given()
    worker.watch.given()
    worker.watch.given()
    worker.pass_time(3)
    worker.watch.answered()
    assert worker.asked == 2
    worker.pass_time(3)
    assert worker.hangs == 0

    worker.pass_time(2)

    assert worker.hangs == 1


def test_time_in_which_we_were_held_up_ourselves_counts_as_a_part() -> None:
    worker = Worker(timeout_s=4)
    worker.watch.given()

    worker.be_held_up(100)
    assert worker.hangs == 0
    worker.watch.answered()
    worker.pass_time(100)

    assert worker.hangs == 0


def test_a_timeout_of_zero_asks_nothing() -> None:
    worker = Worker(timeout_s=0)
    worker.watch.given()
    worker.pass_time(1000)

    assert (worker.asked, worker.hangs) == (0, 0)


@pytest.mark.parametrize("given_first", [True, False])
def test_after_the_end_nothing_is_asked(given_first: bool) -> None:
    worker = Worker()
    if given_first:
        worker.watch.given()
    worker.watch.end()
    worker.watch.given()
    worker.watch.answered()
    worker.pass_time(1000)

    assert worker.asked == given_first
    assert worker.hangs == 0


@given(st.lists(st.sampled_from(["given", "answered"]) | st.floats(0, 3.9), max_size=60))
def test_a_worker_that_always_answers_in_time_never_hangs(
    steps: list[str | float],
) -> None:
    worker = Worker(timeout_s=4)
    waited = 0.0
    for step in steps:
        if isinstance(step, float):
            if waited + step >= 4 * (PARTS - 1) / PARTS:
                worker.watch.answered()
                waited = 0.0
            worker.pass_time(min(step, 2.9))
            waited += step
        elif step == "given":
            worker.watch.given()
        else:
            worker.watch.answered()
            waited = 0.0
        assert len(worker.alarms) <= 1
    assert worker.hangs == 0
