"""A client that does not read costs a bounded amount of memory, and no neighbour its time (B55).

How long a neighbour waits depends on what else the machine does: that is told, and not judged.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.e2e.server import Server
from tests.entrypoints.talk import Talk
from tests.reliability.conftest import NoteFigure
from tests.reliability.processes import comes_true, resident_bytes
from tests.reliability.served_echo import (
    LONGEST_ANSWER,
    PATH,
    converse,
    leave,
    metric,
    served_echo,
    write,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

MIB = 1024 * 1024
# Echo makes 10 s of audio an answer (640 KB of JSON). The kernel's buffers take some of it: the
# server's as much as tcp(7) lets it (tcp_wmem), the client's as little as we want.
ANSWERS = 24
CLIENT_BUFFER_BYTES = 64 * 1024
JOURNAL_BYTES = 64 * 1024
# The limits of the session (its output, the reserve, its journal), and what the allocator keeps.
MAX_GROWTH_BYTES = 2 * MIB + 64 * 1024 + JOURNAL_BYTES + 4 * MIB


class Beats(NamedTuple):
    """How long a neighbour's heartbeats took, in ms, and the server's largest size meanwhile."""

    p99_ms: float
    peak_bytes: int


def slow_talk(server: Server) -> Talk:
    """A client that shows when it does not read: the library reads one frame ahead."""
    host, _, port = server.address.partition(":")
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CLIENT_BUFFER_BYTES)
    raw.connect((host, int(port)))
    return Talk(server.http, PATH, max_queue=1, sock=raw)


def beat(neighbour: Talk, pid: int, loading: threading.Thread) -> Beats:
    """Measure a neighbour's round trips through the engine for as long as the load lasts."""
    took: list[float] = []
    peak = 0
    while not took or loading.is_alive():
        began = perf_counter()
        neighbour.send("session.heartbeat")
        neighbour.until("session.heartbeat_ack")
        took.append((perf_counter() - began) * 1000)
        peak = max(peak, resident_bytes(pid))
    return Beats(float(np.percentile(took, 99)), peak)


def beat_beside(neighbour: Talk, server: Server, talk: Talk, *, reads: bool) -> Beats:
    """Measure while another client gets answers, and reads them or does not."""

    def load() -> None:
        for _ in range(ANSWERS):
            if not reads and overflows(server):
                return
            get_answer(server, talk)
            if reads:
                talk.until("response.done")

    loading = threading.Thread(target=load)
    loading.start()
    try:
        return beat(neighbour, server.process.pid, loading)
    finally:
        loading.join()


def get_answer(server: Server, talk: Talk) -> None:
    """Have the model answer, or the session end for its reader; the answer is not read."""
    before = metric(server, "omniduplex_responses_total")
    talk.send("response.create")
    assert comes_true(
        lambda: metric(server, "omniduplex_responses_total") > before or overflows(server) > 0
    )


def overflows(server: Server) -> float:
    return metric(server, "omniduplex_output_overflows_total")


def open_talk(talk: Talk) -> Talk:
    """Open a session whose every answer is long."""
    talk.until("session.updated")
    write(talk, LONGEST_ANSWER)
    talk.until("conversation.item.done")
    return talk


def test_b55_a_reader_at_0_bytes_per_second_ends_alone_and_learns_why(
    tmp_path: Path, note_figure: NoteFigure
) -> None:
    limits: dict[str, Any] = {"resume_replay_max_bytes_per_session": JOURNAL_BYTES}
    # Audio that comes out of another process is a copy of its own, as that of a real model is.
    stage = {"worker": "process"}
    with served_echo(tmp_path, stage=stage, max_sessions=8, **limits) as server:
        pid = server.process.pid
        with Talk(server.http, PATH) as neighbour:
            open_talk(neighbour)
            with Talk(server.http, PATH) as reader:
                beside_reader = beat_beside(neighbour, server, open_talk(reader), reads=True)
            before = resident_bytes(pid)
            with slow_talk(server) as sleeper:
                beside_sleeper = beat_beside(neighbour, server, open_talk(sleeper), reads=False)
                events, code, reason = sleeper.ends()
            converse(neighbour)
    ratio = beside_sleeper.p99_ms / beside_reader.p99_ms
    growth = beside_sleeper.peak_bytes - before
    note_figure("neighbour_p99_ms_beside_a_reader", round(beside_reader.p99_ms, 2))
    note_figure("neighbour_p99_ms_beside_a_sleeper", round(beside_sleeper.p99_ms, 2))
    note_figure("ratio", round(ratio, 3))
    note_figure("grown_bytes", growth)

    # What does not fit is audio, or very rarely what comes between two answers.
    assert ends_of(events)[-3:] in (
        ["error", "response.done failed", "session.closed"],
        ["response.done completed", "error", "session.closed"],
    )
    assert (code, reason) == (1000, "output_backpressure")
    assert events[-1]["reason"] == "output_backpressure"
    assert growth <= MAX_GROWTH_BYTES


def ends_of(events: list[dict[str, Any]]) -> list[str]:
    """The events that end something, in order."""
    told = []
    for event in events:
        match event["type"]:
            case "response.done":
                told.append(f"response.done {event['response']['status']}")
            case "error" | "session.closed" as kind:
                told.append(kind)
    return told


FAILED = "response.done failed"
# An item is told three times, as added, created and done: three are most of the room.
LONG_TEXT = "word " * 40_000


def test_a_slow_reader_can_lose_the_response_alone(tmp_path: Path) -> None:
    with (
        served_echo(tmp_path, max_sessions=2, output_overflow="fail_response") as server,
        slow_talk(server) as sleeper,
    ):
        open_talk(sleeper)
        asked = 0
        while not overflows(server):
            get_answer(server, sleeper)
            asked += 1
        sleeper.send("session.heartbeat")
        told = ends_of(sleeper.until("session.heartbeat_ack"))
        converse(sleeper)
        leave(sleeper)

    # What does not fit is audio of the last answer, or very rarely what comes before it.
    assert Counter(told) == {"response.done completed": asked - 1, "error": 1, FAILED: 1}


def test_what_is_no_answer_takes_the_place_of_answers_that_nobody_reads(tmp_path: Path) -> None:
    items = [f"item_{number}" for number in range(3)]
    with (
        served_echo(tmp_path, max_sessions=2, output_overflow="fail_response") as server,
        slow_talk(server) as sleeper,
    ):
        open_talk(sleeper)
        asked = 0
        while not overflows(server):
            get_answer(server, sleeper)
            asked += 1
        before = overflows(server)
        for name in items:
            write(sleeper, LONG_TEXT, id=name)
        assert comes_true(lambda: overflows(server) > before)
        sleeper.send("session.heartbeat")
        events = sleeper.until("session.heartbeat_ack")
        converse(sleeper)
        leave(sleeper)

    told = Counter(ends_of(events))
    assert told["error"] == overflows_told(events) >= 2
    assert told["response.done completed"] + told[FAILED] == asked
    assert told[FAILED] >= 2
    done = [event["item"]["id"] for event in events if event["type"] == "conversation.item.done"]
    assert [name for name in done if name in items] == items


def overflows_told(events: list[dict[str, Any]]) -> int:
    """How often the client was told that it reads too slowly."""
    errors = [event["error"]["code"] for event in events if event["type"] == "error"]
    return errors.count("output_backpressure")
