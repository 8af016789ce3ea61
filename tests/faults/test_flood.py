"""One client sends as fast as it can: its neighbour is served, and all is answered (R15)."""

from __future__ import annotations

import base64
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.entrypoints.talk import Talk
from tests.reliability.processes import resident_bytes
from tests.reliability.served_echo import PATH, converse, leave, served_echo

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

APPENDS = 8_000
TURNS = 10
MIB = 1024 * 1024
MAX_GROWTH_BYTES = 4 * MIB
ONE_BYTE = base64.b64encode(b"\1").decode()


class Flood:
    """Appends of one byte each, from a thread of its own."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self._thread = threading.Thread(target=self._run, name="flood")

    def _run(self) -> None:
        for number in range(APPENDS):
            self.talk.send("input_audio_buffer.append", audio=ONE_BYTE, event_id=f"{number}")

    def __enter__(self) -> Flood:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._thread.join()


def test_a_flood_of_single_bytes_keeps_nobody_waiting_and_is_answered(tmp_path: Path) -> None:
    with (
        served_echo(tmp_path, max_sessions=2) as server,
        Talk(server.http, PATH, max_queue=None) as flooder,
        Talk(server.http, PATH) as neighbour,
    ):
        for talk in (flooder, neighbour):
            talk.until("session.updated")
            converse(talk)
        before = resident_bytes(server.process.pid)
        with Flood(flooder):
            for _ in range(TURNS):
                converse(neighbour)
        grown = resident_bytes(server.process.pid) - before
        flooder.send("input_audio_buffer.commit", event_id="commit")
        flooder.send("session.heartbeat")
        told = flooder.until("session.heartbeat_ack")
        converse(flooder)
        leave(flooder)
        leave(neighbour)

    refusals = [event["error"] for event in told if event["type"] == "error"]
    assert {refusal["code"] for refusal in refusals} <= {"input_backpressure"}
    assert all(refusal["type"] == "rate_limit_error" for refusal in refusals)
    assert max(Counter(refusal["event_id"] for refusal in refusals).values(), default=1) == 1
    (committed,) = (event for event in told if event["type"] == "input_audio_buffer.committed")
    assert committed["item_id"]
    assert grown <= MAX_GROWTH_BYTES
