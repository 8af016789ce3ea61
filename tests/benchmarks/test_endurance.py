"""What `bench soak` and `bench flood` report, never how fast it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.stepping_clock import SteppingClock
from typer.testing import CliRunner

from omniduplex.benchmarks.flood import summarise_beats
from omniduplex.benchmarks.machine import describe_machine
from omniduplex.benchmarks.process_sizes import Sizes
from omniduplex.benchmarks.server_process import ServerProcess
from omniduplex.benchmarks.soak import WINDOWS, Soak, SoakReport, Window, report_soak
from omniduplex.entrypoints.cli.main import app

SERVER = ServerProcess(0, "ws://nowhere")


def bench(*arguments: str, report: Path) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["bench", *arguments, "--json", str(report)])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(report.read_bytes())
    return found


def soaked(latencies_ms: list[list[float]], resident_bytes: list[int]) -> SoakReport:
    """What is reported of a soak that went like this, window by window."""
    held = Soak(SERVER, "m", SteppingClock(), seed=1)
    held.latencies_ms = [*latencies_ms, []]
    client = Sizes(resident_bytes=1, open_files=1, threads=1)
    held.windows = [
        Window(
            ends_at_s=number,
            turns=len(taken),
            first_audio_p50_ms=None,
            first_audio_p99_ms=None,
            server=Sizes(resident_bytes=size, open_files=5, threads=2),
            client=client,
        )
        for number, (taken, size) in enumerate(zip(latencies_ms, resident_bytes, strict=True))
    ]
    return report_soak(held, machine=describe_machine(), model="m", sessions=2)


def test_drift_is_the_end_over_the_beginning_without_the_warm_up() -> None:
    slow_start, fast, slower = [[900.0]], [[10.0, 10.0]] * (WINDOWS - 4), [[12.0]] * 3
    report = soaked([*slow_start, *fast, *slower], [10, *[100] * (WINDOWS - 4), *[105] * 3])

    assert report.p99_drift == pytest.approx(0.2)
    assert report.resident_drift == pytest.approx(0.05)
    assert report.turns == 1 + 2 * (WINDOWS - 4) + 3


def test_without_answers_there_is_no_drift_to_tell() -> None:
    report = soaked([[1.0]] + [[] for _ in range(WINDOWS - 1)], [100] * WINDOWS)

    assert report.p99_drift is None
    assert report.resident_drift == 0


def test_beats_are_told_by_their_extremes_too() -> None:
    beats = summarise_beats([1.0, 2.0, 3.0])

    assert (beats.count, beats.p50_ms, beats.max_ms) == (3, 2.0, 3.0)
    assert 2.9 < beats.p99_ms <= 3.0


@pytest.mark.e2e
def test_a_soak_counts_its_sessions_and_looks_at_both_processes(tmp_path: Path) -> None:
    report = bench("soak", "--sessions", "4", "--minutes", "0.05", report=tmp_path / "soak.json")

    assert report["seconds"] >= 3
    assert len(report["windows"]) == WINDOWS
    assert report["turns"] == sum(window["turns"] for window in report["windows"])
    for window in report["windows"]:
        for process in ("server", "client"):
            assert window[process]["resident_bytes"] > 1_000_000
            assert window[process]["open_files"] > 0
            assert window[process]["threads"] >= 1


@pytest.mark.e2e
def test_a_flood_reports_a_neighbour_without_it_and_beside_it(tmp_path: Path) -> None:
    report = bench("flood", "--seconds", "1", "--rate", "1000", report=tmp_path / "flood.json")

    assert report["wanted_per_s"] == 1000
    assert 0 < report["appends_per_s"] <= 1000
    assert set(report["refused"]) <= {"input_backpressure"}
    for beats in (report["quiet"], report["beside"]):
        assert beats["count"] > 0
        assert 0 < beats["p50_ms"] <= beats["p99_ms"] <= beats["max_ms"]
    assert report["machine"]["cores"] >= 1
