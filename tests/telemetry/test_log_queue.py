"""Whoever logs never waits, and what is lost is counted (R22)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
from tests.reliability.processes import comes_true

from omniduplex.telemetry.log_queue import QueuedHandler, dropped_lines

TIMEOUT_S = 60.0


class Reader:
    """Takes lines when it is let; `fails` makes each write an error."""

    def __init__(self) -> None:
        self.may_take = threading.Event()
        self.waits = threading.Event()
        self.fails = False
        self.taken: list[str] = []

    def write(self, text: str) -> None:
        if self.fails:
            raise OSError("No space left on device")
        self.waits.set()
        assert self.may_take.wait(TIMEOUT_S)
        self.taken.append(text)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.setattr("omniduplex.telemetry.log_queue.FLUSH_TIMEOUT_S", TIMEOUT_S)
    reader = Reader()
    yield reader
    reader.may_take.set()


def log(handler: QueuedHandler, *lines: str) -> None:
    for line in lines:
        handler.handle(logging.makeLogRecord({"msg": line}))


def test_lines_are_written_in_order(reader: Reader) -> None:
    handler = QueuedHandler(reader.write)
    reader.may_take.set()

    log(handler, "a", "b", "c")
    handler.flush()

    assert reader.taken == ["a\n", "b\n", "c\n"]
    assert handler.dropped == 0


def test_while_nobody_reads_what_has_no_room_is_dropped_and_told_later(reader: Reader) -> None:
    handler = QueuedHandler(reader.write, max_lines=2)
    log(handler, "being written")
    assert reader.waits.wait(TIMEOUT_S)

    log(handler, "waits", "waits too", "lost", "lost too")
    assert handler.dropped == 2
    reader.may_take.set()

    assert comes_true(lambda: len(reader.taken) == 4)
    assert reader.taken[0] == "being written\n"
    assert reader.taken[1] == "2 log lines are missing here: nobody took them\n"
    assert reader.taken[2:] == ["waits\n", "waits too\n"]


def test_a_write_that_fails_costs_its_line_alone(reader: Reader) -> None:
    handler = QueuedHandler(reader.write)
    reader.may_take.set()
    reader.fails = True
    log(handler, "lost")
    handler.flush()
    assert handler.dropped == 1
    reader.fails = False

    log(handler, "written")

    handler.flush()
    assert reader.taken == ["written\n", "1 log lines are missing here: nobody took them\n"]


def test_a_flush_does_not_wait_for_ever(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omniduplex.telemetry.log_queue.FLUSH_TIMEOUT_S", 0.01)
    handler = QueuedHandler(reader.write)
    log(handler, "nobody reads this")

    handler.flush()

    assert reader.taken == []


def test_what_the_process_has_dropped_can_be_asked(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = QueuedHandler(reader.write)
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler(), handler])
    reader.fails = True
    log(handler, "a", "b")
    handler.flush()

    assert dropped_lines() == 2
