"""Both benchmarks as they are typed, briefly: what they report, never how fast it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from tests.models.local.conftest import asset
from typer.testing import CliRunner

from omniduplex.audio.wav import write_wav
from omniduplex.benchmarks.questions import QUESTION_TEXTS
from omniduplex.entrypoints.cli.bench import app as bench_app
from omniduplex.entrypoints.cli.bench_tools import finite
from omniduplex.entrypoints.cli.main import app
from omniduplex.models.local.assets import load_manifest

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def bench(*arguments: str, report: Path) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["bench", *arguments, "--json", str(report)])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(report.read_bytes())
    return found


def check_machine(machine: dict[str, Any]) -> None:
    assert machine["cores"] >= 1
    assert {"omniduplex", "msgspec", "websockets"} <= set(machine["packages"])


@pytest.mark.e2e
def test_overhead_reports_cpu_per_pair_beside_a_bare_loop(tmp_path: Path) -> None:
    report = bench(
        "overhead", "--sessions", "8", "--seconds", "3", report=tmp_path / "new" / "overhead.json"
    )
    check_machine(report["machine"])
    assert (report["sessions"], report["frame_ms"]) == (8, 80)
    assert report["ratio"] > 0
    for side in (report["stack"], report["baseline"]):
        assert side["seconds"] > 0
        assert side["appends"] > 0
        assert side["pairs"] > 0
        assert side["cpu_s"] > 0
        assert side["cpu_us_per_pair"] > 0
        assert side["added_latency_ms"]["count"] == side["pairs"] - side["late"]
        assert 0 < side["added_latency_ms"]["p50"] <= side["added_latency_ms"]["p95"]
    assert set(report["origins"]) == {"cpu_us_per_pair", "added_latency_ms"}


@pytest.mark.local
@pytest.mark.timeout(180)
@pytest.mark.parametrize("vad", ["server_vad", "none"])
def test_latency_reports_every_turn_and_its_stages(tmp_path: Path, vad: str) -> None:
    for name in load_manifest().default_names():
        asset(name)
    report = bench("latency", "--turns", "2", "--vad", vad, report=tmp_path / "latency.json")
    check_machine(report["machine"])
    assert (report["completed"] + report["incomplete"], report["failed"]) == (2, 0)
    assert report["vad"] == vad
    assert 0 <= report["word_error_rate"] <= 0.5
    figures = report["figures"]
    assert set(figures) == set(report["origins"])
    hears_turns = vad == "server_vad"
    assert [turn["said"] for turn in report["turns"]] == list(QUESTION_TEXTS[:2])
    for turn in report["turns"]:
        assert turn["question"] == turn["said"]
        assert turn["status"] in ("completed", "incomplete")
        assert turn["first_audio_ms"] > 0
        assert turn["stages"]["tts_first_s"] > 0
        assert turn["stages"]["llm_first_token_s"] <= turn["stages"]["llm_first_clause_s"]
        assert (turn["own"] is not None) == hears_turns
    if hears_turns:
        assert figures["hold_ms"]["min"] >= 500
        for turn in report["turns"]:
            own = turn["own"]
            parts = own["audio_in_s"] + own["between_stages_s"] + own["audio_out_s"]
            assert own["total_s"] == pytest.approx(parts)
            assert own["total_s"] > 0
            # Of a draft one hop is counted for another that went on beside the models.
            assert own["drafted"] or own["total_s"] * 1000 < turn["first_audio_ms"]


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("overhead", "--seconds"),
        ("soak", "--minutes"),
        ("flood", "--seconds"),
        ("serve", "--rate"),
    ],
)
def test_a_number_that_is_not_finite_is_a_usage_error_that_names_its_option(
    command: str, option: str, value: str
) -> None:
    result = CliRunner().invoke(app, ["bench", command, f"{option}={value}"])

    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in COLOURS.sub("", result.output)
    assert isinstance(result.exception, SystemExit)


def test_every_option_of_a_bench_that_is_a_float_has_to_be_finite() -> None:
    found = [
        option.callback
        for command in bench_app.registered_commands
        for hint in get_type_hints(command.callback, include_extras=True).values()
        if get_origin(hint) is Annotated
        for kind, option in [get_args(hint)]
        if float in (kind, *get_args(kind))
    ]

    assert found == [finite] * 4


def test_a_folder_without_recordings_is_told_in_a_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["bench", "latency", "--questions", str(tmp_path)])
    assert result.exit_code == 1
    assert "bench failed" in result.output
    assert "Traceback" not in result.output


def test_a_server_that_is_not_there_is_told_in_a_line(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", b"\0\x40" * 1600, 16_000)
    result = CliRunner().invoke(
        app,
        ["bench", "latency", "--url", "ws://127.0.0.1:9", "--questions", str(tmp_path)],
    )
    assert result.exit_code == 1
    assert "bench failed: cannot connect" in result.output
