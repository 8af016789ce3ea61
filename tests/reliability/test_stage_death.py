"""A stage worker that dies or hangs takes its own sessions along, and nothing else (R6)."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.e2e.server import Server
from tests.entrypoints.talk import Talk
from tests.faults.counts import IS_SOAK
from tests.faults.test_cuts import tone
from tests.reliability.conftest import NoteFigure
from tests.reliability.served_echo import PATH, ask, leave, served_echo
from websockets.exceptions import ConnectionClosed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SESSIONS = 50 if IS_SOAK else 20
# A busy machine may keep a healthy worker waiting, but not for so long.


def worker_of(server: Server) -> int:
    """The process id of the one stage worker."""
    (worker,) = (
        pid
        for pid in server.family()
        if b"omniduplex.stages.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    return worker


def start_answer(talk: Talk) -> None:
    """Be in the middle of an answer, which goes on only with the audio that comes in."""
    ask(talk, "one two three four five")
    talk.until("response.created")
    talk.send("input_audio_buffer.append", audio=tone(0.08, 0))
    talk.until("response.output_audio.delta")


def answers_again(server: Server) -> None:
    """Get an answer as soon as the stage is back; the test's timeout is the limit."""
    while True:
        with Talk(server.http, PATH) as talk, suppress(ConnectionClosed):
            start_answer(talk)
            leave(talk)
            return


def check_ending(events: list[dict[str, Any]], code: int, reason: str, *, answering: bool) -> None:
    """The active answer fails, or an error says why; then the session expires."""
    types = [event["type"] for event in events]
    assert types[-1] == "session.expired", types
    assert (events[-1]["reason"], code, reason) == ("request_cleanup", 1000, "request_cleanup")
    failed = [event["response"]["status"] for event in events if event["type"] == "response.done"]
    errors = [event["error"]["code"] for event in events if event["type"] == "error"]
    if answering:
        assert failed == ["failed"], types
    else:
        assert (failed, errors) == ([], ["runtime_data_plane_stream_failed"]), types


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_the_sessions_of_a_worker_that_dies_or_hangs_end_typed_and_the_next_one_works(
    tmp_path: Path, note_figure: NoteFigure, blow: signal.Signals
) -> None:
    stage = {"worker": "process", "options": {"paced": True}}
    with served_echo(tmp_path, stage=stage, max_sessions=SESSIONS) as server, ExitStack() as stack:
        talks = [stack.enter_context(Talk(server.http, PATH)) for _ in range(SESSIONS)]
        for number, talk in enumerate(talks):
            talk.until("session.updated")
            if number % 2:
                start_answer(talk)
        os.kill(worker_of(server), blow)
        struck = monotonic()
        if blow == signal.SIGSTOP:
            # A worker is known to hang by what it was given and did not do.
            talks[0].send("input_audio_buffer.append", audio=tone(0.08, 0))
        for number, talk in enumerate(talks):
            check_ending(*talk.ends(), answering=bool(number % 2))
        note_figure("all_told_after_s", round(monotonic() - struck, 3))
        stack.close()
        answers_again(server)
        note_figure("answers_again_after_s", round(monotonic() - struck, 3))
