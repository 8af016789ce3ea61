"""The command as it is typed, briefly: what it reports, never how fast it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.e2e.server import Server, serve
from typer.testing import CliRunner

from omniduplex.audio.wav import write_wav
from omniduplex.benchmarks.serve.command import ServeChoice, ServeChoiceError
from omniduplex.benchmarks.serve.dataset import Synthetic
from omniduplex.benchmarks.serve.load import Level
from omniduplex.entrypoints.cli.main import app

ECHO = "omniduplex/echo"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(ECHO) as served:
        yield served


@pytest.fixture
def questions(tmp_path: Path) -> str:
    """A folder with one short sound."""
    folder = tmp_path / "asked"
    folder.mkdir()
    write_wav(folder / "a.wav", b"\0\x10\0\xf0" * 2400, 16_000)
    return str(folder)


def bench(*arguments: str, report: Path) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["bench", "serve", *arguments, "--json", str(report)])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(report.read_bytes())
    return found


def choice(
    concurrency: str = "", rate: float | None = None, sessions: int | None = None
) -> ServeChoice:
    return ServeChoice(
        model=ECHO,
        backend="openai-realtime-duplex",
        concurrency=concurrency,
        rate_per_s=rate,
        sessions=sessions,
        questions=1,
        dataset=None,
        synthetic=Synthetic.TONE,
        seed=1,
        plots=None,
        api_key=None,
    )


@pytest.mark.e2e
def test_a_sweep_starts_its_own_server_and_draws_what_it_found(
    tmp_path: Path, questions: str
) -> None:
    report = bench(
        *("--concurrency", "1,2", "--questions", "1", "--dataset", questions),
        *("--plots", str(tmp_path / "plots")),
        report=tmp_path / "serve.json",
    )
    assert report["machine"]["cores"] >= 1
    assert (report["url"], report["dataset"]) == (None, "asked")
    assert [level["answers_ended"] for level in report["levels"]] == [1, 2]
    for level in report["levels"]:
        assert (level["answers_failed"], level["errors"]) == (0, {})
        assert 0 < level["ttfp_ms"]["p50"] <= level["generation_ms"]["p50"]
        assert [one["preroll_ms"] for one in level["continuity"]] == [0, 100, 200]
        assert level["stages"]["0"]["units"]["min"] > 0
        spoken = sum(answer["audio_ms"] for answer in level["answers"])
        assert level["speech_min"] * 60_000 == pytest.approx(spoken)
    pictures = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert pictures == ["distribution.svg", "first_audio.svg", "underruns.svg"]
    for name in pictures:
        ElementTree.parse(tmp_path / "plots" / name)


@pytest.mark.e2e
@pytest.mark.parametrize("backend", ["openai-realtime-duplex", "openai-realtime"])
def test_arrivals_are_measured_in_both_dialects(
    tmp_path: Path, questions: str, server: Server, backend: str
) -> None:
    report = bench(
        *("--url", server.url, "--backend", backend, "--rate", "5", "--sessions", "2"),
        *("--questions", "2", "--dataset", questions),
        report=tmp_path / "serve.json",
    )
    (level,) = report["levels"]
    assert report["backend"] == backend
    assert report["url"] == server.url
    assert level["level"] == {"sessions": 2, "concurrency": None, "rate_per_s": 5.0}
    assert (level["answers_ended"], level["answers_failed"], level["errors"]) == (4, 0, {})
    assert level["ttft_ms"]["count"] == level["ttfp_ms"]["count"] == 4
    origin = report["measurement_origin"]["ttfp_ms"]
    assert ("response.create" in origin) == (backend == "openai-realtime")


@pytest.mark.e2e
@pytest.mark.parametrize("backend", ["openai-realtime-duplex", "openai-realtime"])
def test_a_server_that_is_not_there_is_told_in_a_line(backend: str) -> None:
    arguments = ["bench", "serve", "--url", "ws://127.0.0.1:9", "--backend", backend]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "bench failed: cannot connect" in result.output
    assert "Traceback" not in result.output


def test_a_concurrency_is_a_sweep_of_levels() -> None:
    assert choice("1,8").levels() == [
        Level(sessions=1, concurrency=1),
        Level(sessions=8, concurrency=8),
    ]
    assert choice().levels() == [Level(sessions=1, concurrency=1)]
    assert choice("4", sessions=9).levels() == [Level(sessions=9, concurrency=4)]


def test_a_rate_is_one_level() -> None:
    assert choice(rate=2.0, sessions=3).levels() == [Level(sessions=3, rate_per_s=2.0)]
    assert choice(rate=2.0).levels() == [Level(sessions=20, rate_per_s=2.0)]


@pytest.mark.parametrize(
    ("concurrency", "rate"), [("1", 2.0), ("", 0.0), ("0", None), ("two", None), ("1,", None)]
)
def test_a_load_that_is_none_is_refused(concurrency: str, rate: float | None) -> None:
    with pytest.raises(ServeChoiceError):
        choice(concurrency, rate).levels()
