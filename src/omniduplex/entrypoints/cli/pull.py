"""Bring model weights to this machine, with a progress bar for each file."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from omniduplex.models.local import assets


def show_assets(console: Console) -> None:
    """Name every asset of the manifest, and whether it is in the default set."""
    table = Table.grid(padding=(0, 2))
    for asset in assets.load_manifest().assets:
        table.add_row(asset.name, asset.what, "" if asset.default else "on request")
    console.print(table, highlight=False)


def pull(names: Sequence[str], assets_dir: Path | None, console: Console) -> list[Path]:
    """Fetch and verify the named assets (none: the default set), and say where each one is.

    Raises:
        AssetError: an asset is unknown or no source gave the pinned bytes.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    manifest = assets.load_manifest()
    wanted = tuple(names) or manifest.default_names()
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: assets.Progress) -> None:
            if step.file not in tasks:
                tasks[step.file] = bars.add_task(step.file, total=step.total)
            bars.update(tasks[step.file], completed=step.done)

        paths = assets.ensure(wanted, show, assets_dir)
    for name, path in zip(wanted, paths, strict=True):
        asset = manifest.asset(name)
        console.print(f"{name}: {path} ({asset.upstream}, {asset.licence})", soft_wrap=True)
    return paths
