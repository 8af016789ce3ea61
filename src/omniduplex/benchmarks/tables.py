"""Reports for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from omniduplex.benchmarks.cancel import CancelReport
from omniduplex.benchmarks.latency import LatencyReport, Turn
from omniduplex.benchmarks.overhead import OverheadReport, Side
from omniduplex.benchmarks.summary import Summary

ROWS = {
    "first_audio_ms": "end of speech to first audio",
    "own_share_ms": "of it, our own share",
    "turn_end_ms": "end of speech to end of turn",
    "hold_ms": "silence that ended the turn",
    "recognition_ms": "recognition",
    "llm_first_token_ms": "language model, first token",
    "llm_first_clause_ms": "language model, first clause",
    "tts_first_ms": "voice, first audio",
}


def show_turn(console: Console, turn: Turn) -> None:
    """One line for a turn that is over."""
    took = "-" if turn.first_audio_ms is None else f"{turn.first_audio_ms:.0f} ms"
    line = f"{turn.status:<10} {took:>8}  {turn.heard}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_latency(console: Console, report: LatencyReport) -> None:
    """The figures over all turns."""
    table = _table(f"latency: {report.model}, {report.vad}", "ms")
    for name, label in ROWS.items():
        summary: Summary | None = getattr(report.figures, name)
        table.add_row(label, *_cells(summary))
    console.print(table)
    errors = report.word_error_rate
    words = "" if errors is None else f", {errors:.1%} of the words misheard"
    ends = f"{report.completed} completed, {report.incomplete} incomplete, {report.failed} failed"
    console.print(f"{ends}{words}; questions: {report.voice_of_questions}", soft_wrap=True)


def show_overhead(console: Console, report: OverheadReport) -> None:
    """Both servers, side by side."""
    table = Table(title=f"overhead: {report.model}, {report.sessions} sessions, 80 ms frames")
    for name in ("", "CPU us/pair", "pairs", "late", "p50 ms", "p95 ms", "idle CPU s"):
        table.add_column(name, justify="right" if name else "left")
    for name, side in (("omniduplex", report.stack), ("bare loop", report.baseline)):
        table.add_row(name, *_side_cells(side))
    console.print(table)
    console.print(f"{report.ratio:.1f} times the bare loop", highlight=False)


def show_cancel(console: Console, report: CancelReport) -> None:
    """How long cancelled answers went on."""
    table = Table(title=f"cancel: {report.model}, {report.sessions} sessions")
    for name in ("", "p50 ms", "p95 ms", "p99 ms", "max ms", "cancels"):
        table.add_column(name, justify="right" if name else "left")
    rows = (
        ("cancel sent to response.done", report.terminal_ms),
        ("cancel sent to last delta", report.last_delta_ms),
    )
    for label, summary in rows:
        table.add_row(label, *_tail_cells(summary))
    console.print(table)
    console.print(
        f"{report.deltas_after_cancel} deltas read between a cancel and its response.done,"
        f" {report.deltas_after_terminal} after it; {report.missed} answers ended by themselves",
        highlight=False,
        soft_wrap=True,
    )


def _tail_cells(summary: Summary | None) -> list[str]:
    if summary is None:
        return ["-"] * 5
    figures = (summary.p50, summary.p95, summary.p99, summary.max)
    return [*(f"{value:.1f}" for value in figures), str(summary.count)]


def _side_cells(side: Side) -> list[str]:
    latency = side.added_latency_ms
    return [
        f"{side.cpu_us_per_pair:.0f}",
        str(side.pairs),
        str(side.late),
        f"{latency.p50:.2f}" if latency else "-",
        f"{latency.p95:.2f}" if latency else "-",
        f"{side.idle_cpu_s:.2f}",
    ]


def _table(title: str, first: str) -> Table:
    table = Table(title=title)
    table.add_column(first)
    for name in ("p50", "p95", "min", "max", "turns"):
        table.add_column(name, justify="right")
    return table


def _cells(summary: Summary | None) -> list[str]:
    if summary is None:
        return ["-"] * 5
    figures = (summary.p50, summary.p95, summary.min, summary.max)
    return [*(f"{value:.1f}" for value in figures), str(summary.count)]
