"""Leases run by a clock that nobody sets, for a server that stood still too (R20)."""

from __future__ import annotations

import ast
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.server import Server
from tests.entrypoints.running import running
from tests.entrypoints.talk import Talk
from tests.reliability.processes import comes_true
from tests.reliability.served_echo import PATH, converse, served_echo

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

SRC = Path(__file__).parents[2] / "src"
WALL_CLOCKS = {
    "time": {"time", "time_ns", "ctime", "localtime", "gmtime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
FOR_PEOPLE = {
    "omniduplex/benchmarks/machine.py": "when a report was made",
    "omniduplex/engine/duplex/session/manager.py": "`expires_at` of the session object",
    "omniduplex/entrypoints/duplex/recorder.py": "names and headers of recordings",
    "omniduplex/entrypoints/openai/app.py": "`created` of the model",
    "omniduplex/entrypoints/openai/chat.py": "`created` of a completion",
    "omniduplex/entrypoints/openai/turn_app.py": "`created` of the model",
}
RESUME_PATH = "/v1/duplex?autostart=0"
HOUR_S = 3600.0
STANDSTILL_S = 2.0


def wall_clocks(tree: ast.AST) -> Iterator[str]:
    """The places that read the time of day."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
                if name in WALL_CLOCKS.get(owner, ()):
                    yield f"{owner}.{name}"
            case ast.ImportFrom(module="time", names=names):
                yield from (alias.name for alias in names if alias.name in WALL_CLOCKS["time"])


def test_the_time_of_day_is_for_people_alone() -> None:
    readers = {
        path.relative_to(SRC).as_posix(): found
        for path in SRC.rglob("*.py")
        if (found := set(wall_clocks(ast.parse(path.read_text("utf-8")))))
    }

    assert readers.keys() == FOR_PEOPLE.keys(), readers


@pytest.mark.parametrize(
    "source",
    [
        "time.time()",
        "x = datetime.datetime.now(UTC)",
        "from time import time",
        "f(clock=time.time)",
    ],
)
def test_a_reader_of_the_time_of_day_is_found(source: str) -> None:
    assert list(wall_clocks(ast.parse(source)))


@pytest.mark.e2e
@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_session_outlives_a_clock_that_is_set(
    monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    now = time.time
    with DuplexOmni("omniduplex/echo") as omni, running(create_app(omni)) as server:
        with Talk(server.base, PATH) as talk, Talk(server.base, PATH) as other:
            credential = talk.until("session.created")[-1]
            other.until("session.updated")
            talk.socket.close()
            monkeypatch.setattr(time, "time", lambda: now() + jump_s)
            converse(other)
        with Talk(server.base, RESUME_PATH) as back:
            assert resume(back, credential)["type"] == "session.resumed"
            converse(back)


@pytest.mark.e2e
@pytest.mark.parametrize("grace_s", [0.5 * STANDSTILL_S, 30 * STANDSTILL_S])
def test_after_a_standstill_a_session_goes_on_or_has_expired_by_its_grace(
    tmp_path: Path, grace_s: float
) -> None:
    with (
        served_echo(
            tmp_path, max_sessions=4, disconnect_grace_s=grace_s, log_level="info"
        ) as server,
        Talk(server.http, PATH) as staying,
    ):
        staying.until("session.updated")
        with Talk(server.http, PATH) as talk:
            credential = talk.until("session.created")[-1]
            leave_for_now(server, talk, credential, staying)
        os.kill(server.process.pid, signal.SIGSTOP)
        threading.Event().wait(STANDSTILL_S)  # what is tested is that this time counts
        os.kill(server.process.pid, signal.SIGCONT)

        with Talk(server.http, RESUME_PATH) as back:
            answer = resume(back, credential)
            if grace_s < STANDSTILL_S:
                assert answer["error"]["code"] == "session_resume_expired"
            else:
                assert answer["type"] == "session.resumed"
                converse(back)
        converse(staying)


def leave_for_now(server: Server, talk: Talk, credential: dict[str, Any], witness: Talk) -> None:
    """Close the connection alone, and see that the engine has heard of it."""
    talk.socket.close()
    news = f"session {credential['session']['id']}: disconnected"
    assert comes_true(lambda: any(news in line for line in server.log))
    for _ in range(2):  # goes the same way as the news, behind it
        witness.send("session.heartbeat")
        witness.until("session.heartbeat_ack")


def resume(talk: Talk, credential: dict[str, Any]) -> dict[str, Any]:
    """Ask for the session on a new connection; returns the first answer."""
    talk.send(
        "session.resume",
        session_id=credential["session"]["id"],
        resume_token=credential["resume_token"],
    )
    return talk.recv()
