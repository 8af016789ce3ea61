"""An install without the extra is told what it lacks before anything is loaded."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from omniduplex.config.errors import ConfigError
from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.cli.main import app
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.models.local.runtimes import EXTRA, RUNTIMES, require_runtimes
from omniduplex.models.local.turn import LocalTurnPlugin

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
HOW_TO_GET_IT = r"not installed: sanotts; .*pip install 'omniduplex\[local\]'"


@pytest.fixture
def without_the_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package of the extra were not installed."""
    monkeypatch.setitem(sys.modules, "sanotts", None)


def test_the_runtimes_are_those_of_the_extra() -> None:
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert sorted(Requirement(line).name for line in extras[EXTRA]) == sorted(RUNTIMES)


def test_with_the_extra_nothing_is_missing() -> None:
    require_runtimes()


@pytest.mark.usefixtures("without_the_voice")
def test_an_engine_without_the_extra_says_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match=HOW_TO_GET_IT):
        DuplexOmni("omniduplex/local")


@pytest.mark.usefixtures("without_the_voice")
def test_so_do_turns() -> None:
    with pytest.raises(ConfigError, match=HOW_TO_GET_IT):
        LocalTurnPlugin(load_pipeline("omniduplex/local", None))


@pytest.mark.usefixtures("without_the_voice")
def test_the_benchmark_whose_questions_it_speaks_tells_it_in_a_line() -> None:
    done = CliRunner().invoke(app, ["bench", "latency"])
    assert done.exit_code == 1
    assert "pip install 'omniduplex[local]'" in done.stderr
    assert "Traceback" not in done.output
