"""The report for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from omniduplex.benchmarks.serve.report import LevelReport, ServeReport
from omniduplex.benchmarks.summary import Summary

COLUMNS = (
    "load",
    "answers",
    "failed / lost",
    "TTFT p50/p95 ms",
    "TTFP p50/p95 ms",
    "RTF p50/p95",
    "gap p95/max ms",
    "load late p95 ms",
)


def show_serve(console: Console, report: ServeReport) -> None:
    """Latencies and continuity by load, and what the stages said."""
    table = Table(title=f"serve: {report.model}, {report.backend}")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "load" else "right")
    for one in report.levels:
        table.add_row(*_cells(one))
    console.print(table)
    console.print(_continuity(report))
    if any(one.stages for one in report.levels):
        console.print(_stages(report))
    for one in report.levels:
        for reason, count in one.errors.items():
            line = f"{one.level.name}: {count} sessions ended: {reason}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    before, after = report.machine.load_before[0], report.load_after[0]
    console.print(f"machine load {before:.1f} before and {after:.1f} after", highlight=False)


def _cells(one: LevelReport) -> list[str]:
    late = one.latest_chunk_ms
    return [
        one.level.name,
        str(one.answers_ended),
        f"{one.answers_failed} / {one.sessions_failed}",
        _pair(one.ttft_ms, 1),
        _pair(one.ttfp_ms, 1),
        _pair(one.rtf, 2),
        f"{one.gap_ms.p95:.0f} / {one.gap_ms.max:.0f}" if one.gap_ms else "-",
        f"{late.p95:.0f}" if late else "-",
    ]


def _pair(summary: Summary | None, digits: int) -> str:
    return f"{summary.p50:.{digits}f} / {summary.p95:.{digits}f}" if summary else "-"


def _continuity(report: ServeReport) -> Table:
    table = Table(title="continuity of the virtual player, per minute of speech")
    for name in ("load", "speech min", "pre-roll ms", "underruns", "per min", "gap ms per min"):
        table.add_column(name, justify="left" if name == "load" else "right")
    for one in report.levels:
        for found in one.continuity:
            table.add_row(
                one.level.name,
                f"{one.speech_min:.1f}",
                str(found.preroll_ms),
                str(found.underruns),
                f"{found.underruns_per_min:.2f}",
                f"{found.gap_ms_per_min:.1f}",
            )
    return table


def _stages(report: ServeReport) -> Table:
    table = Table(title="as the server's stages measured it")
    for name in ("load", "stage", "figure", "p50", "p95", "max"):
        table.add_column(name, justify="left" if name in ("load", "figure") else "right")
    for one in report.levels:
        for stage, metrics in one.stages.items():
            for name, found in metrics.items():
                figures = (found.p50, found.p95, found.max)
                table.add_row(one.level.name, stage, name, *(f"{value:.3f}" for value in figures))
    return table
