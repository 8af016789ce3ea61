"""Disks, logs and metrics are beside the conversation: none of them holds it up (R22)."""

from __future__ import annotations

import fcntl
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from urllib.request import urlopen

import pytest
from tests.e2e.server import STOP_TIMEOUT_S, Server, serve
from tests.entrypoints.talk import TIMEOUT_S, Talk
from tests.reliability.conftest import NoteFigure
from tests.reliability.processes import comes_true
from tests.reliability.served_echo import PATH, converse, leave, metric, served_echo

pytestmark = pytest.mark.e2e

MODEL = "omniduplex/echo"
PIPE_BYTES = 4096
SCRAPES = 200
BEATS = 300


def test_a_full_disk_costs_the_recording_and_nothing_else(tmp_path: Path) -> None:
    with serve(MODEL, "--record", str(tmp_path), "--drain-timeout", "0") as server:
        full = (PIPE_BYTES, PIPE_BYTES)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, full)
        with Talk(server.http, PATH) as talk:
            talk.until("session.updated")
            for _ in range(5):
                converse(talk)
            leave(talk)
        assert comes_true(lambda: any("is dropped" in line for line in server.log))
        assert comes_true(lambda: list(tmp_path.iterdir()) == [])


class Unread:
    """A server whose standard error nobody reads any more, since it said where it listens."""

    def __init__(self, process: subprocess.Popen[str], http: str) -> None:
        self.process = process
        self.http = http


@contextmanager
def unread() -> Iterator[Unread]:
    """Serve echo, log everything, and stop reading the log."""
    command = [sys.executable, "-m", "omniduplex.entrypoints.cli.main", "serve", MODEL]
    command += ["--port", "0", "--log-level", "debug", "--drain-timeout", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            told = iter(process.stderr.readline, "")
            address = next(line for line in told if "base_url=" in line).split('"')[1]
            yield Unread(process, address.removesuffix("/v1"))
        finally:
            process.kill()


def test_a_log_that_nobody_reads_holds_nobody_up() -> None:
    with unread() as server:
        # Each connection is worth more than 300 bytes of log: together twice what the pipe holds.
        for _ in range(30):
            with Talk(server.http, PATH) as talk:
                talk.until("session.updated")
                leave(talk)
        with Talk(server.http, PATH) as talk:
            talk.until("session.updated")
            converse(talk)
            leave(talk)
        server.process.terminate()

        assert server.process.wait(STOP_TIMEOUT_S) == 0


def test_a_storm_of_scrapes_holds_nobody_up(tmp_path: Path, note_figure: NoteFigure) -> None:
    with served_echo(tmp_path, max_sessions=2) as server, Talk(server.http, PATH) as talk:
        talk.until("session.updated")
        calm_ms = p99_ms(talk)
        began = perf_counter()
        storm = threading.Thread(target=scrape, args=(server,))
        storm.start()
        stormy_ms = p99_ms(talk)
        while storm.is_alive():
            converse(talk)
        storm.join()
        note_figure("scrapes_per_s", round(SCRAPES / (perf_counter() - began)))
        note_figure("p99_ms_in_calm", calm_ms)
        note_figure("p99_ms_in_the_storm", stormy_ms)
        converse(talk)

        assert metric(server, "omniduplex_responses_total") >= 1
        leave(talk)


def scrape(server: Server) -> None:
    """Read the metrics without a pause."""
    for _ in range(SCRAPES):
        with urlopen(f"{server.http}/metrics", timeout=TIMEOUT_S) as response:
            assert response.status == 200
            response.read()


def p99_ms(talk: Talk) -> float:
    """Round trips through the engine, in ms."""
    took = []
    for _ in range(BEATS):
        began = perf_counter()
        talk.send("session.heartbeat")
        talk.until("session.heartbeat_ack")
        took.append((perf_counter() - began) * 1000)
    return round(sorted(took)[int(0.99 * len(took))], 2)
