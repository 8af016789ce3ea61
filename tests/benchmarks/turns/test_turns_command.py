"""The command as it is typed, briefly: what it reports, never how fast it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.models.local.conftest import asset
from typer.testing import CliRunner

from omniduplex.audio.wav import read_wav
from omniduplex.benchmarks.turns import command
from omniduplex.entrypoints.cli.main import app
from omniduplex.models.local.assets import load_manifest


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--scenarios", "nonsense"), "no scenario nonsense; there are simple_turn"),
        (("--voices", "slt,nobody"), "no voice nobody; there are slt"),
        (("--policy", "adaptve"), "no policy adaptve; there are listen_only"),
        (("--vad", "none"), "server_vad or semantic_vad"),
        (("--url", "ws://127.0.0.1:9", "--quick"), "cannot connect"),
        (("--url", "ws://127.0.0.1:9", "--quick", "--dialect", "openai"), "cannot connect"),
    ],
)
def test_what_a_user_can_put_right_is_told_in_a_line(arguments: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(app, ["bench", "turns", *arguments])
    assert result.exit_code == 1
    assert "bench failed" in result.output
    assert told in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("model", ["omniduplex/local", "omniduplex/echo", "my/own"])
@pytest.mark.parametrize("dialect", ["duplex", "openai"])
@pytest.mark.parametrize(
    ("told", "asked"),
    [((), "semantic_vad"), (("--vad", "server_vad"), "server_vad")],
    ids=["untold", "told"],
)
def test_turns_are_ended_in_one_way_whatever_the_model_is_called(
    monkeypatch: pytest.MonkeyPatch, model: str, dialect: str, told: tuple[str, ...], asked: str
) -> None:
    chosen: list[command.Choice] = []

    def note(choice: command.Choice, *_: Any, **__: Any) -> None:
        chosen.append(choice)

    monkeypatch.setattr(command, "measure_turns", note)
    arguments = ["--url", "ws://127.0.0.1:9", "--model", model, "--dialect", dialect, *told]
    result = CliRunner().invoke(app, ["bench", "turns", *arguments])
    assert result.exit_code == 0, result.output
    assert [(choice.model, choice.vad) for choice in chosen] == [(model, asked)]


@pytest.mark.local
@pytest.mark.timeout(180)
@pytest.mark.parametrize("dialect", ["duplex", "openai"])
def test_a_quick_run_reports_a_turn_and_an_interruption(tmp_path: Path, dialect: str) -> None:
    for name in load_manifest().default_names():
        asset(name)
    arguments = ["--quick", "--parallel", "2", "--dialect", dialect]
    paths = ["--json", str(tmp_path / "turns.json"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["bench", "turns", *arguments, *paths])
    assert result.exit_code == 0, result.output

    report = json.loads((tmp_path / "turns.json").read_bytes())
    assert report["parameters"]["dialect"] == dialect
    assert report["machine"]["cores"] >= 1
    simple, interrupted = report["conversations"]
    assert (simple["scenario"], interrupted["scenario"]) == ("simple_turn", "interrupt_early")
    assert simple["errors"] == interrupted["errors"] == []
    # What became of both is told, whatever it is: a slow machine may answer too late to be waited
    # for, or halt where it should be talked over.
    (reply,) = simple["exact"]["replies"]
    assert reply["kind"] == "turn"
    assert reply["latency_s"] is None or reply["latency_s"] > 0
    said = [span["kind"] for span in interrupted["timeline"]["user"]]
    assert said == ["turn", "interruption"] or interrupted["missed"]
    yields = interrupted["exact"]["yields"]
    assert len(yields) <= said.count("interruption")
    assert report["totals"]["exact"]["yielded"] == (
        {"count": 1, "share": float(yields[0]["yielded"])} if yields else None
    )
    for conversation in report["conversations"]:
        stem = tmp_path / "out" / f"{conversation['scenario']}-{conversation['voice']}"
        pcm, rate_hz = read_wav(stem.with_suffix(".wav"))
        seconds = len(pcm) / 2 / rate_hz
        assert seconds == pytest.approx(conversation["timeline"]["length_s"])
        ElementTree.parse(stem.with_suffix(".svg"))
