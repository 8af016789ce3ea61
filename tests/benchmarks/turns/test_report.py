from __future__ import annotations

import io

import msgspec
import numpy as np
import pytest
from rich.console import Console

from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.turns.agent_track import AgentTrack
from omniduplex.benchmarks.turns.recording import Recording
from omniduplex.benchmarks.turns.report import (
    ConversationReport,
    Parameters,
    TurnsReport,
    report_conversation,
    report_turns,
)
from omniduplex.benchmarks.turns.spans import Kind, UserSpan
from omniduplex.benchmarks.turns.tables import show_conversation, show_turns

RATE_HZ = 1000
MACHINE = Machine(
    cpu="test",
    cores=2,
    system="test",
    python="3",
    packages={},
    load_before=(1.0, 2.0, 3.0),
    measured_at="then",
)


def answered(scenario: str, voice: str, after_ms: int) -> ConversationReport:
    """One turn from 1 s to 2 s, and its answer."""
    track = AgentTrack(0)
    track.arrive("a", np.full(2000, 8000, dtype="<i2").tobytes(), 2000 + after_ms)
    recording = Recording(
        rate_hz=RATE_HZ,
        user_pcm=bytes(2 * 9000),
        user=(UserSpan(kind=Kind.TURN, start_s=1.0, end_s=2.0, clip="ask"),),
        agent=track,
        echo=False,
        missed=("mhm",),
        latest_chunk_ms=7.0,
        events=(),
        errors=("oops",),
    )
    return report_conversation(scenario, voice, "adaptive", recording)


def report(*conversations: ConversationReport) -> TurnsReport:
    return report_turns(
        conversations,
        machine=MACHINE,
        load_after=(4.0, 5.0, 6.0),
        seconds=12.0,
        parameters=Parameters(
            url=None,
            model="test",
            dialect="duplex",
            policy="adaptive",
            vad="server_vad",
            seed=1,
            parallel=1,
            voices=("slt", "rms"),
            scenarios=("one", "two"),
            chunk_ms=20,
            preroll_ms=40,
        ),
    )


RUN = report(answered("one", "slt", 500), answered("one", "rms", 700), answered("two", "slt", 900))


def test_every_panel_is_told_in_all_by_scenario_and_by_voice() -> None:
    assert RUN.totals.exact.reply_ms is not None
    assert RUN.totals.exact.reply_ms.p50 == pytest.approx(700)
    assert RUN.totals.full_duplex_bench.turn_taking.latency_s == pytest.approx(0.7)
    one, slt = RUN.by_scenario["one"], RUN.by_voice["slt"]
    assert one.exact.reply_ms is not None
    assert one.exact.reply_ms.p50 == pytest.approx(600)
    assert slt.exact.reply_ms is not None
    assert slt.exact.reply_ms.p50 == pytest.approx(700)
    assert one.tau_voice.counts["response"] == 2


def test_a_report_is_json_and_comes_back() -> None:
    assert msgspec.json.decode(msgspec.json.encode(RUN), type=TurnsReport) == RUN


def shown(run: TurnsReport) -> str:
    console = Console(file=io.StringIO(), width=120)
    show_turns(console, run)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_figures_stand_beside_what_is_wanted() -> None:
    lines = shown(RUN).splitlines()
    (reply,) = [line for line in lines if "reply p50 (L_R)" in line]
    assert [cell.strip() for cell in reply.split("│")[2:5]] == ["700 ms", "<= 900 ms", "3"]
    (panel,) = [line for line in lines if "L_R" in line and "reply" not in line]
    # In ticks of 200 ms: 0.4, 0.6 and 0.8 s.
    assert "0.60 s" in panel
    assert "3 cues missed" in lines[-1]
    assert "load 1.0 before and 4.0 after" in lines[-1]


def test_each_scenario_has_its_row() -> None:
    (row,) = [line for line in shown(RUN).splitlines() if line.startswith("│ one ")]
    cells = [cell.strip() for cell in row.split("│")[1:-1]]
    assert cells == ["one", "2/2", "600 ms", "-", "-", "-", "-"]


def test_what_was_not_measured_is_a_dash() -> None:
    (row,) = [line for line in shown(RUN).splitlines() if "interruptions yielded" in line]
    assert [cell.strip() for cell in row.split("│")[2:5]] == ["-", ">= 95%", "0"]


def test_a_run_of_nothing_can_be_shown() -> None:
    assert "0 conversations" in shown(report())


def test_a_conversation_tells_what_went_wrong() -> None:
    console = Console(file=io.StringIO(), width=120)
    show_conversation(console, RUN.conversations[0])
    assert isinstance(console.file, io.StringIO)
    assert "missed mhm; oops" in console.file.getvalue()
