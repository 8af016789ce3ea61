"""Clients that read by drops, or by fits and starts, beside one that reads (R14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.server import Server
from tests.entrypoints.talk import Talk
from tests.faults.tcp_proxy import Lane, Plan, TcpProxy
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
KEPT_OUTPUT_BYTES = 2 * MIB
JOURNAL_BYTES = 64 * 1024
# The limits of the session (its output, the reserve, its journal), and what the allocator keeps.
MAX_GROWTH_BYTES = KEPT_OUTPUT_BYTES + 64 * 1024 + JOURNAL_BYTES + 4 * MIB
# Echo's longest answer is 640 KB on the wire; what the kernel takes is about 6 MiB.
TOO_MANY_ANSWERS = 24
ANSWERS_AT_ONCE = 2
DROP = Lane(bytes_per_s=1000, slice_bytes=100)


class Answers:
    """Answers of one server, counted by its metrics, as nobody may read them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._overflows_before = metric(server, "omniduplex_output_overflows_total")
        self._total = metric(server, "omniduplex_responses_total")

    @property
    def overflows(self) -> float:
        """Readers that were too slow since then."""
        return metric(self._server, "omniduplex_output_overflows_total") - self._overflows_before

    def get(self, talk: Talk) -> None:
        """Have the model answer, or the session end for its reader."""
        talk.send("response.create")
        self._wait()

    def converse(self, neighbour: Talk) -> None:
        """A whole turn, which is read."""
        converse(neighbour)
        self._wait()

    def _wait(self) -> None:
        self._total += 1
        assert comes_true(
            lambda: (
                metric(self._server, "omniduplex_responses_total") >= self._total
                or self.overflows > 0
            )
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # Audio that comes out of another process is a copy of its own, as that of a real model is.
    stage = {"worker": "process"}
    limits: dict[str, Any] = {
        "max_pending_output_bytes_per_session": KEPT_OUTPUT_BYTES,
        "resume_replay_max_bytes_per_session": JOURNAL_BYTES,
    }
    folder = tmp_path_factory.mktemp("served")
    with served_echo(folder, stage=stage, max_sessions=4, **limits) as server:
        with Talk(server.http, PATH) as reader:  # what grows once has grown
            write(reader, LONGEST_ANSWER)
            for _ in range(TOO_MANY_ANSWERS // 2):
                reader.send("response.create")
                reader.until("response.done")
            leave(reader)
        yield server


def test_a_reader_at_1_kb_per_second_ends_alone(server: Server) -> None:
    pid, answers = server.process.pid, Answers(server)
    with (
        TcpProxy(int(server.address.rpartition(":")[2])) as proxy,
        Talk(server.http, PATH) as neighbour,
    ):
        proxy.plan(Plan(down=DROP))
        before = peak = resident_bytes(pid)
        with Talk(proxy.base, PATH) as dropwise:
            write(dropwise, LONGEST_ANSWER)
            for _ in range(TOO_MANY_ANSWERS):
                answers.get(dropwise)
                peak = max(peak, resident_bytes(pid))
                if answers.overflows:
                    break
                answers.converse(neighbour)
            assert answers.overflows == 1
            assert comes_true(lambda: metric(server, "omniduplex_sessions_open") == 1)
            proxy.cut()
        converse(neighbour)
        leave(neighbour)

    assert peak - before <= MAX_GROWTH_BYTES


def test_a_reader_that_stops_and_goes_gets_everything_once(server: Server) -> None:
    pid, answers = server.process.pid, Answers(server)
    with Talk(server.http, PATH, max_queue=1) as fitful, Talk(server.http, PATH) as neighbour:
        events = fitful.until("session.updated")
        write(fitful, LONGEST_ANSWER)
        before = peak = resident_bytes(pid)
        for _ in range(5):
            for _ in range(ANSWERS_AT_ONCE):
                answers.get(fitful)
            answers.converse(neighbour)
            peak = max(peak, resident_bytes(pid))
            for _ in range(ANSWERS_AT_ONCE):
                events += fitful.until("response.done")
                assert events[-1]["response"]["status"] == "completed"
        leave(fitful)
        leave(neighbour)

    numbers = [event["server_event_seq"] for event in events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert answers.overflows == 0
    assert peak - before <= MAX_GROWTH_BYTES
