"""What the cancel benchmark counts, and that a cancelled answer ends for good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.benchmarks.stepping_clock import SteppingClock
from typer.testing import CliRunner

from omniduplex.benchmarks.cancel import CancelLog, report_cancel
from omniduplex.benchmarks.machine import describe_machine
from omniduplex.entrypoints.cli.main import app


class HandClock(SteppingClock):
    """Goes on when the test says so."""

    def passes(self, seconds: float) -> None:
        self._now += seconds


def test_a_cancel_is_timed_to_the_last_delta_and_to_the_end() -> None:
    clock = HandClock()
    log = CancelLog(clock)
    log.delta("a")
    log.sends()
    clock.passes(0.25)
    log.delta("a")
    clock.passes(0.25)
    log.done("a", "cancelled")

    (cancelled,) = log.cancelled
    assert (cancelled.last_delta_s, cancelled.terminal_s, cancelled.deltas) == (0.25, 0.5, 1)
    assert (log.missed, log.deltas_after_terminal) == (0, 0)


def test_a_delta_behind_its_end_is_counted_whatever_answer_goes_on() -> None:
    log = CancelLog(HandClock())
    log.sends()
    log.done("a", "cancelled")

    assert not log.delta("a")
    assert log.delta("b")
    assert log.deltas_after_terminal == 1


def test_an_answer_that_ended_by_itself_was_not_cancelled() -> None:
    log = CancelLog(HandClock())
    log.done("a", "completed")
    log.sends()
    log.done("b", "completed")

    assert (log.cancelled, log.missed) == ([], 2)


def test_a_report_puts_all_callers_together() -> None:
    clock, logs = HandClock(), []
    for number in range(2):
        log = CancelLog(clock)
        log.sends()
        clock.passes(0.25 * number)
        log.done("a", "cancelled")
        logs.append(log)
    logs[1].delta("a")
    report = report_cancel(logs, machine=describe_machine(), model="m")

    assert (report.sessions, report.cancels, report.deltas_after_terminal) == (2, 2, 1)
    assert report.terminal_ms is not None
    assert (report.terminal_ms.min, report.terminal_ms.max) == (0.0, 250.0)


@pytest.mark.e2e
def test_no_delta_follows_the_end_of_a_cancelled_answer(tmp_path: Path) -> None:
    path = tmp_path / "cancel.json"
    arguments = ["bench", "cancel", "--sessions", "3", "--cancels", "2", "--json", str(path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(path.read_bytes())

    assert report["deltas_after_terminal"] == 0
    assert report["cancels"] + report["missed"] == 6
    assert report["sessions"] == 3
    assert set(report["origins"]) == {"terminal_ms", "last_delta_ms", "deltas_after_terminal"}
