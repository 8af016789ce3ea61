"""What the commands of `omniduplex bench` share: a server, a report, failures in a line."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

ECHO_MODEL = "omniduplex/echo"

JsonFile = Annotated[
    Path | None,
    typer.Option("--json", help="Where the report goes, as JSON.", dir_okay=False, writable=True),
]


def finite(value: float | None) -> float | None:
    """Take a number as it is; the callback of every option that is a float.

    Raises:
        typer.BadParameter: it is infinite, or none at all: no limit of a range stops `nan`.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


def serve_command(model: str, deploy_config: Path | None = None) -> list[str]:
    """The command that serves a model on a free port."""
    command = [sys.executable, "-m", "omniduplex.entrypoints.cli.main", "serve", model]
    command += ["--port", "0", "--log-level", "warning"]
    return command if deploy_config is None else [*command, "--deploy-config", str(deploy_config)]


def write_report(path: Path | None, report: Any) -> None:
    """Write a report as JSON, if it is wanted."""
    import msgspec

    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


@contextmanager
def told_failures() -> Iterator[None]:
    """What a user can put right is told in a line; anything else is a bug and shows itself."""
    import wave

    from rich.console import Console

    from omniduplex.benchmarks.questions import QuestionError
    from omniduplex.benchmarks.serve.command import ServeChoiceError
    from omniduplex.benchmarks.server_process import ServerStartError
    from omniduplex.benchmarks.turns.command import ChoiceError
    from omniduplex.benchmarks.turns.line import LineError
    from omniduplex.clients import DuplexClientError
    from omniduplex.config.errors import ConfigError
    from omniduplex.models.local.asset_sources import AssetError

    known = (
        QuestionError,
        ServerStartError,
        ChoiceError,
        ServeChoiceError,
        LineError,
        DuplexClientError,
        ConfigError,
        AssetError,
        OSError,
        wave.Error,
    )
    failures: list[BaseException] = []
    try:
        yield
    except* known as group:
        failures = list(_with_notes(group))
    for error in failures:
        told = "\n".join((f"bench failed: {error}", *getattr(error, "__notes__", ())))
        Console(stderr=True).print(told, style="red", markup=False, soft_wrap=True)
    if failures:
        raise typer.Exit(1)


def _with_notes(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors themselves, each with the notes of the groups around it."""
    for error in group.exceptions:
        for note in getattr(group, "__notes__", ()):
            error.add_note(note)
        if isinstance(error, BaseExceptionGroup):
            yield from _with_notes(error)
        else:
            yield error
