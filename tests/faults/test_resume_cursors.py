"""What a client says it has got: the same again, less, more, or nonsense (R13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.talk import Talk
from tests.faults.resumable_echo import resumable_echo

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = pytest.mark.e2e

BEATS = 5
HEAD = 2 + BEATS
Event = dict[str, Any]


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    with DuplexOmni(pipeline=resumable_echo(max_sessions=64, disconnect_grace_s=60)) as omni:
        yield omni


class Left:
    """A session of `HEAD` events whose client went away, and may ask for it from anywhere."""

    def __init__(self, base: str) -> None:
        self._base = base
        with Talk(base, "/v1/duplex?model=m") as talk:
            created, updated = talk.until("session.updated")
            self.events = [created, updated]
            for _ in range(BEATS):
                talk.send("session.heartbeat")
                self.events += talk.until("session.heartbeat_ack")
        self._id, self._token = created["session"]["id"], created["resume_token"]

    def ask(self, cursor: object) -> tuple[Event, list[Event]]:
        """Resume from behind this event: the first answer, and what is replayed with it."""
        with Talk(self._base, "/v1/duplex?autostart=0") as talk:
            talk.send(
                "session.resume",
                session_id=self._id,
                resume_token=self._token,
                last_received_server_event_seq=cursor,
            )
            first, replayed = talk.recv(), []
            if first["type"] == "session.resumed":
                self._token = first["resume_token"]
                assert isinstance(cursor, int)
                replayed = [talk.recv() for _ in range(HEAD - cursor)]
            return first, replayed


@pytest.fixture
def left(omni: DuplexOmni, serve_app: ServeApp) -> Left:
    return Left(serve_app(create_app(omni)))


def test_the_same_number_again_is_the_same_replay_again(left: Left) -> None:
    replays = [left.ask(HEAD - 2)[1] for _ in range(3)]

    assert replays == [left.events[-2:]] * 3


def test_an_older_number_is_a_longer_replay(left: Left) -> None:
    for cursor in (HEAD, HEAD - 1, 2, HEAD):
        assert left.ask(cursor)[1] == left.events[cursor:]


@pytest.mark.parametrize(
    "cursor",
    [HEAD + 1, 2**31, 2**53, 2**63, 2**64, 2**200, -1, -(2**63), 1e300, 2.5, "7", True, [7]],
)
def test_a_number_that_cannot_be_is_refused_and_spoils_nothing(left: Left, cursor: object) -> None:
    refusal, _ = left.ask(cursor)

    assert refusal["type"] == "error"
    assert refusal["error"]["code"] in ("invalid_session_resume", "session_resume_conflict")
    assert refusal["error"]["type"] == "invalid_request_error"
    assert left.ask(HEAD - 1)[1] == left.events[-1:]
