"""The report for people: each figure beside what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from omniduplex.benchmarks.summary import Summary
from omniduplex.benchmarks.turns.exact import Rate
from omniduplex.benchmarks.turns.report import ConversationReport, Panels, TurnsReport
from omniduplex.benchmarks.turns.spans import Kind
from omniduplex.benchmarks.turns.stream_time import StreamPanel


class Row(NamedTuple):
    """A figure, how it is read from the panels, and what is wanted: at most, or at least."""

    name: str
    read: Callable[[Panels], float | None]
    count: Callable[[Panels], int]
    show: str
    wanted: float | None = None
    at_most: bool = False


def _p50(summary: Summary | None) -> float | None:
    return None if summary is None else summary.p50


def _p95(summary: Summary | None) -> float | None:
    return None if summary is None else summary.p95


def _count(found: Summary | Rate | None) -> int:
    return 0 if found is None else found.count


def _share(rate: Rate | None) -> float | None:
    return None if rate is None else rate.share


def _kept(panels: Panels, kind: Kind) -> Rate | None:
    return panels.exact.let_pass.get(kind.value)


def _kept_row(name: str, kind: Kind, wanted: float) -> Row:
    return Row(
        name,
        lambda panels: _share(_kept(panels, kind)),
        lambda panels: _count(_kept(panels, kind)),
        "{:.0%}",
        wanted,
    )


EXACT = (
    Row(
        "turns answered",
        lambda p: _share(p.exact.answered),
        lambda p: _count(p.exact.answered),
        "{:.0%}",
        0.95,
    ),
    Row(
        "reply p50 (L_R)",
        lambda p: _p50(p.exact.reply_ms),
        lambda p: _count(p.exact.reply_ms),
        "{:.0f} ms",
        900,
        True,
    ),
    Row(
        "reply p95",
        lambda p: _p95(p.exact.reply_ms),
        lambda p: _count(p.exact.reply_ms),
        "{:.0f} ms",
    ),
    Row(
        "reply after an interruption p50",
        lambda p: _p50(p.exact.after_interruption_ms),
        lambda p: _count(p.exact.after_interruption_ms),
        "{:.0f} ms",
    ),
    Row(
        "interruptions yielded (R_Y)",
        lambda p: _share(p.exact.yielded),
        lambda p: _count(p.exact.yielded),
        "{:.0%}",
        0.95,
    ),
    Row(
        "yield p50 (L_Y)",
        lambda p: _p50(p.exact.yield_ms),
        lambda p: _count(p.exact.yield_ms),
        "{:.0f} ms",
        400,
        True,
    ),
    Row(
        "yield p95",
        lambda p: _p95(p.exact.yield_ms),
        lambda p: _count(p.exact.yield_ms),
        "{:.0f} ms",
        700,
        True,
    ),
    Row(
        "pauses kept",
        lambda p: _share(p.exact.pauses_kept),
        lambda p: _count(p.exact.pauses_kept),
        "{:.0%}",
        0.90,
    ),
    _kept_row("backchannels let pass (S_BC)", Kind.BACKCHANNEL, 0.90),
    _kept_row("vocal tics let pass (S_VT)", Kind.VOCAL_TIC, 0.95),
    _kept_row("speech to others let pass (S_ND)", Kind.NON_DIRECTED, 0.95),
    _kept_row("noise let pass", Kind.NOISE, 0.95),
    _kept_row("own echo let pass", Kind.ECHO, 0.95),
)


_TAU = {
    "L_R": ("response_latency_mean", "response", "{:.2f} s"),
    "R_R": ("response_rate", "response", "{:.2f}"),
    "L_Y": ("yield_latency_mean", "yield", "{:.2f} s"),
    "R_Y": ("yield_rate", "yield", "{:.2f}"),
    "I_A": ("agent_interruption_rate", "response", "{:.2f}"),
    "S_BC": ("selectivity_backchannel", "backchannel", "{:.2f}"),
    "S_VT": ("selectivity_vocal_tic", "vocal_tic", "{:.2f}"),
    "S_ND": ("selectivity_non_directed", "non_directed", "{:.2f}"),
}


def _tau(name: str) -> Row:
    field, category, show = _TAU[name]
    return Row(
        name,
        lambda panels: getattr(panels.tau_voice, field),
        lambda panels: panels.tau_voice.counts[category],
        show,
    )


TAU = tuple(map(_tau, _TAU))
FDB = (
    Row(
        "pause, takeover rate",
        lambda p: p.full_duplex_bench.pause_takeover,
        lambda p: p.full_duplex_bench.counts["pause"],
        "{:.2f}",
        0.10,
        True,
    ),
    Row(
        "turn taking, takeover rate",
        lambda p: p.full_duplex_bench.turn_taking.rate,
        lambda p: p.full_duplex_bench.counts["turn_taking"],
        "{:.2f}",
        0.95,
    ),
    Row(
        "turn taking, latency",
        lambda p: p.full_duplex_bench.turn_taking.latency_s,
        lambda p: _count(p.full_duplex_bench.turn_taking.unclipped_s),
        "{:.2f} s",
    ),
    Row(
        "interruption, takeover rate",
        lambda p: p.full_duplex_bench.interruption.rate,
        lambda p: p.full_duplex_bench.counts["interruption"],
        "{:.2f}",
    ),
    Row(
        "interruption, latency",
        lambda p: p.full_duplex_bench.interruption.latency_s,
        lambda p: _count(p.full_duplex_bench.interruption.unclipped_s),
        "{:.2f} s",
    ),
    Row(
        "backchannel, takeover rate",
        lambda p: p.full_duplex_bench.backchannel_takeover,
        lambda p: p.full_duplex_bench.counts["backchannel"],
        "{:.2f}",
    ),
)


def _stream_row(name: str, read: Callable[[StreamPanel], Summary | None], share: str) -> Row:
    return Row(
        f"{name} {share}",
        lambda p: getattr(read(p.stream_time), share, None),
        lambda p: _count(read(p.stream_time)),
        "{:.0f} ms",
    )


STREAM = tuple(
    _stream_row(name, read, share)
    for name, read in (
        ("silence heard before a turn is over", lambda panel: panel.hold_ms),
        ("speech heard before an interruption is one", lambda panel: panel.overlap_ms),
    )
    for share in ("p50", "p95")
)


def show_conversation(console: Console, one: ConversationReport) -> None:
    """One line for a conversation that is over."""
    spoken = f"{len(one.timeline.agent)} agent spans in {one.timeline.length_s:.1f} s"
    notes = [f"missed {', '.join(one.missed)}"] if one.missed else []
    notes += one.errors
    line = "; ".join([f"{one.scenario:<22} {one.voice:<6} {spoken}", *notes])
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_turns(console: Console, report: TurnsReport) -> None:
    """The totals, three tables of them, and what they were measured on."""
    asked = report.parameters
    title = f"turns: {asked.model}, {asked.policy}, {asked.vad}, {asked.dialect}"
    for name, rows in (
        (title, EXACT),
        ("by the clock of the audio", STREAM),
        ("tau-voice", TAU),
        ("Full-Duplex-Bench v1", FDB),
    ):
        console.print(_table(name, rows, report.totals))
    console.print(_by_scenario(report))
    before, after = report.machine.load_before[0], report.load_after[0]
    missed = sum(len(one.missed) for one in report.conversations)
    underruns = sum(one.underruns for one in report.conversations)
    late = max((one.latest_chunk_ms for one in report.conversations), default=0.0)
    console.print(
        f"{len(report.conversations)} conversations in {report.seconds:.0f} s, load {before:.1f}"
        f" before and {after:.1f} after; {missed} cues missed, {underruns} underruns,"
        f" microphone at most {late:.0f} ms late",
        highlight=False,
        soft_wrap=True,
    )


def _table(title: str, rows: tuple[Row, ...], panels: Panels) -> Table:
    table = Table(title=title)
    table.add_column("")
    for name in ("measured", "wanted", "of"):
        table.add_column(name, justify="right")
    for row in rows:
        value = row.read(panels)
        shown = "-" if value is None else row.show.format(value)
        table.add_row(row.name, _coloured(row, value, shown), _wanted(row), str(row.count(panels)))
    return table


def _by_scenario(report: TurnsReport) -> Table:
    """What went right where, of how many, and how fast the answers were."""
    table = Table(title="by scenario")
    table.add_column("")
    for name in ("answered", "reply p50", "yielded", "yield p50", "pauses kept", "let pass"):
        table.add_column(name, justify="right")
    for scenario, panels in report.by_scenario.items():
        exact = panels.exact
        passed = list(exact.let_pass.values())
        table.add_row(
            scenario,
            _of(exact.answered),
            _in_ms(exact.reply_ms),
            _of(exact.yielded),
            _in_ms(exact.yield_ms),
            _of(exact.pauses_kept),
            " ".join(map(_of, passed)) or "-",
        )
    return table


def _of(rate: Rate | None) -> str:
    return "-" if rate is None else f"{round(rate.share * rate.count)}/{rate.count}"


def _in_ms(summary: Summary | None) -> str:
    return "-" if summary is None else f"{summary.p50:.0f} ms"


def _wanted(row: Row) -> str:
    if row.wanted is None:
        return ""
    return ("<= " if row.at_most else ">= ") + row.show.format(row.wanted)


def _coloured(row: Row, value: float | None, shown: str) -> str:
    if value is None or row.wanted is None:
        return shown
    reached = value <= row.wanted if row.at_most else value >= row.wanted
    return f"[green]{shown}[/green]" if reached else f"[red]{shown}[/red]"
