"""Senseless events over real connections, one after the other, each timed to its answer."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

import msgspec
import numpy as np
from tests.entrypoints.talk import Talk
from tests.entrypoints.test_fuzz import CODES, FAULTS, RESET, senseless, settle, turn
from tests.reliability.processes import resident_bytes
from tests.reliability.served_echo import served_echo

PATHS = ("/v1/realtime", "/v1/duplex?model=m")
MESSAGES_PER_SESSION = 5_000


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the messages; times are from sending one to the answer to a known error
    that was sent right behind it.
    """

    messages: int
    sessions: int
    refusals: dict[str, int]
    p50_ms: float
    p99_ms: float
    max_ms: float
    grown_bytes: int
    """The server's memory at the end, over that after the first two sessions."""


def hold(messages: int) -> Held:
    """Send so many messages to a server in a process of its own.

    Raises:
        AssertionError: an answer was not among the named refusals, or was the server's own fault,
            or a session could not be used afterwards.
    """
    refusals: Counter[str] = Counter()
    took_ms: list[float] = []
    sizes: list[int] = []
    with tempfile.TemporaryDirectory() as folder, served_echo(Path(folder)) as server:
        for number in itertools.count():
            left = messages - len(took_ms)
            if left <= 0:
                break
            chance = random.Random(number)
            with Talk(server.http, PATHS[number % len(PATHS)]) as talk:
                talk.until("session.created")
                for text in itertools.islice(senseless(chance), min(left, MESSAGES_PER_SESSION)):
                    began = perf_counter()
                    talk.socket.send(text)
                    answers = settle(talk, "mark")
                    took_ms.append((perf_counter() - began) * 1000)
                    refusals.update(
                        one["error"]["code"] for one in answers[:-1] if one["type"] == "error"
                    )
                talk.send("response.cancel")
                talk.send("session.update", session=RESET)
                settle(talk, "reset")
                assert turn(talk)[-1]["response"]["status"] == "completed"
            sizes.append(resident_bytes(server.process.pid))
    assert set(refusals) <= CODES - FAULTS, refusals
    p50, p99 = np.percentile(took_ms, (50, 99))
    return Held(
        messages=len(took_ms),
        sessions=len(sizes),
        refusals=dict(refusals.most_common()),
        p50_ms=float(p50),
        p99_ms=float(p99),
        max_ms=max(took_ms),
        grown_bytes=sizes[-1] - sizes[: len(PATHS)][-1],
    )
