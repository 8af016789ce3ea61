"""Sessions that have ended leave nothing behind (R17, B61)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.entrypoints.talk import Talk
from tests.reliability.conftest import NoteFigure
from tests.reliability.processes import open_files, resident_bytes, settles, threads
from tests.reliability.served_echo import IS_CI, PATH, converse, leave, served_echo

from omniduplex.engine.duplex_orchestrator import CONVERTERS

pytestmark = pytest.mark.e2e

SESSIONS = 2000 if IS_CI else 700
# Pools of threads, and of memory, grow as they are first needed.
WARM_UP = 200
SAMPLE_EVERY = 10
MAX_SLOPE_BYTES = 1024


@pytest.mark.timeout(400)
@pytest.mark.parametrize("path", ["/v1/realtime", PATH])
def test_b61_memory_files_and_threads_are_flat_over_sessions(
    tmp_path: Path, note_figure: NoteFigure, path: str
) -> None:
    samples: list[tuple[int, int]] = []
    with served_echo(tmp_path, max_sessions=4) as server:
        pid = server.process.pid
        files = running = 0
        for number in range(SESSIONS):
            if number == WARM_UP:
                files, running = open_files(pid), threads(pid)
            if number >= WARM_UP and number % SAMPLE_EVERY == 0:
                samples.append((number, resident_bytes(pid)))
            with Talk(server.http, path) as talk:
                talk.until("session.created")
                converse(talk)
                if path == PATH:
                    leave(talk)
        assert settles(lambda: open_files(pid), files)
        # A pool makes a thread more whenever it finds none of its own free, up to its size.
        assert settles(lambda: threads(pid), running + CONVERTERS)
        with Talk(server.http, path) as talk:
            talk.until("session.created")
    numbers, sizes = np.array(samples, dtype=float).T
    slope = float(np.polyfit(numbers, sizes, 1)[0])
    note_figure("bytes_per_session", round(slope))

    assert slope < MAX_SLOPE_BYTES
