"""The command `omniduplex`. What a command needs is imported when it runs, so help is quick."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from omniduplex.entrypoints.cli import bench
from omniduplex.entrypoints.cli.replay import replay
from omniduplex.entrypoints.cli.serve import serve
from omniduplex.entrypoints.cli.talk import talk

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"omniduplex {version('omniduplex')}")
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Talk with a model, and talk over it."""


app.command()(serve)
app.command()(talk)
app.command()(replay)
app.add_typer(bench.app, name="bench")


@app.command()
def pull(
    names: Annotated[
        list[str] | None, typer.Argument(help="Assets to fetch; none: the default set.")
    ] = None,
    assets_dir: Annotated[
        Path | None,
        typer.Option(help="Where weights live, instead of $OMNIDUPLEX_ASSETS."),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Name the assets, fetch none.")] = False,
) -> None:
    """Fetch the weights of the embedded model, once. `--list` names all there are."""
    from rich.console import Console

    from omniduplex.entrypoints.cli import pull as pulling
    from omniduplex.models.local.asset_sources import AssetError

    if listing:
        pulling.show_assets(Console())
        return
    console = Console(stderr=True)
    try:
        pulling.pull(names or [], assets_dir, console)
    except (AssetError, OSError) as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
