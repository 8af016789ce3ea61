"""`omniduplex bench soak` and `flood`: what time and a rude neighbour do to a server."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from omniduplex.entrypoints.cli.bench_tools import (
    ECHO_MODEL,
    JsonFile,
    finite,
    serve_command,
    told_failures,
    write_report,
)


def soak(
    json_file: JsonFile = None,
    sessions: Annotated[int, typer.Option(help="Concurrent sessions.", min=1, max=256)] = 100,
    minutes: Annotated[
        float, typer.Option(help="How long they talk.", min=0.05, callback=finite)
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the pauses between turns.", min=0)] = 1,
) -> None:
    """Echo under sessions that come, talk and go for a long time: what drifts."""
    from rich.console import Console

    from omniduplex.benchmarks.machine import describe_machine
    from omniduplex.benchmarks.server_process import serve
    from omniduplex.benchmarks.soak import Soak, report_soak, show_soak, show_window
    from omniduplex.clients import MonotonicClock

    console = Console()
    machine = describe_machine()
    with told_failures(), serve(serve_command(ECHO_MODEL)) as server:
        held = Soak(server, ECHO_MODEL, MonotonicClock(), seed=seed)
        asyncio.run(held.hold(sessions, minutes * 60, lambda one: show_window(console, one)))
        report = report_soak(held, machine=machine, model=ECHO_MODEL, sessions=sessions)
        show_soak(console, report)
        write_report(json_file, report)


def flood(
    json_file: JsonFile = None,
    rate: Annotated[
        int, typer.Option(help="Appends of one byte per second on one socket.", min=100)
    ] = 10_000,
    seconds: Annotated[
        float,
        typer.Option(
            help="How long a neighbour is measured, without and with.", min=0.5, callback=finite
        ),
    ] = 10.0,
) -> None:
    """Echo with one client that sends appends of one byte: what its neighbour feels."""
    from rich.console import Console

    from omniduplex.benchmarks.flood import measure_flood, show_flood
    from omniduplex.benchmarks.machine import describe_machine
    from omniduplex.benchmarks.server_process import serve
    from omniduplex.clients import MonotonicClock

    machine = describe_machine()
    with told_failures(), serve(serve_command(ECHO_MODEL)) as server:
        clock = MonotonicClock()
        measured = measure_flood(server, ECHO_MODEL, clock, rate=rate, seconds=seconds)
        report = asyncio.run(measured).on(machine)
        show_flood(Console(), report)
        write_report(json_file, report)
