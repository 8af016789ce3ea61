"""`omniduplex replay`: hold a recorded conversation again, and tell what goes otherwise."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from omniduplex.entrypoints.cli.replay_comparison import Difference

DEFAULT_URL = "ws://127.0.0.1:8000"
# Exit codes: what a replay finds, and that there could be none.
WENT_OTHERWISE, NO_REPLAY = 1, 2


def replay(
    file: Annotated[
        Path, typer.Argument(help="A recording (serve --record).", exists=True, dir_okay=False)
    ],
    url: Annotated[str, typer.Option(help="A server, ws://host:port.")] = DEFAULT_URL,
    model: Annotated[
        str | None, typer.Option(help="The model to ask for, instead of the recording's.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            help="The server's key; better given by the environment.",
            envvar="OMNIDUPLEX_API_KEY",
            show_default=False,
        ),
    ] = None,
    speed: Annotated[
        float, typer.Option(help="How much faster than it was recorded.", min=0.01)
    ] = 1.0,
    wait_s: Annotated[
        float, typer.Option(help="Seconds to wait for what the client had seen.", min=0.0)
    ] = 10.0,
    max_wer: Annotated[
        float, typer.Option(help="Word error rate up to which words are the same.", min=0.0)
    ] = 0.25,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", help="Where the comparison goes, as JSON.", dir_okay=False, writable=True
        ),
    ] = None,
) -> None:
    """Play a recording's client against a server; exit code 1 when it goes otherwise."""
    from rich.console import Console

    from omniduplex.clients import DuplexClientError, MonotonicClock
    from omniduplex.clients.recording import RecordingError, read_conversation
    from omniduplex.clients.replay import replay as play
    from omniduplex.entrypoints.cli.replay_comparison import Tolerance, compare

    try:
        recorded = read_conversation(file)
        replayed = asyncio.run(
            play(
                recorded,
                url,
                MonotonicClock(),
                model=model,
                api_key=api_key,
                speed=speed,
                wait_s=wait_s,
            )
        )
    except (RecordingError, DuplexClientError, OSError) as error:
        Console(stderr=True).print(
            f"replay failed: {error}", style="red", markup=False, soft_wrap=True
        )
        raise typer.Exit(NO_REPLAY) from None
    tolerance = Tolerance(word_error_rate=max_wer)
    differences = compare(recorded, replayed.conversation, tolerance)
    show(Console(), file, differences, replayed.vain_waits)
    if json_file is not None:
        _write(json_file, differences, replayed.vain_waits)
    if differences:
        raise typer.Exit(WENT_OTHERWISE)


def show(
    console: Console, file: Path, differences: Sequence[Difference], vain_waits: Sequence[str]
) -> None:
    """Print the differences, recorded lines as -, live ones as +."""
    for wait in vain_waits:
        console.print(f"waited in vain {wait}", style="yellow", markup=False, soft_wrap=True)
    for one in differences:
        console.print(f"{one.where}: {one.what}", style="bold", markup=False)
        for line in difflib.ndiff(one.recorded, one.live):
            if not line.startswith("?"):
                style = {"-": "red", "+": "green"}.get(line[0], "dim")
                console.print(f"  {line}", style=style, markup=False, soft_wrap=True)
    verdict = f"went otherwise in {len(differences)} places" if differences else "went as recorded"
    console.print(f"{file.name}: {verdict}", style="red" if differences else "green", markup=False)


def _write(path: Path, differences: Sequence[Difference], vain_waits: Sequence[str]) -> None:
    import msgspec

    report = {"same": not differences, "differences": differences, "vain_waits": vain_waits}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
