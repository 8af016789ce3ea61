"""A client that loses its connection, and what it comes back with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.entrypoints.fake_omni import FakeOmni, FakeSession
from tests.entrypoints.talk import TIMEOUT_S, Talk

from omniduplex.protocol.duplex import HeartbeatAck

PATH = "/v1/duplex?model=m"

RESUME_PATH = "/v1/duplex?model=m&autostart=0"


def resumable_omni() -> FakeOmni:
    """An engine whose sessions outlive their connections."""
    omni = FakeOmni()
    omni.resumable = True
    return omni


class Credential:
    """What a client keeps to come back: the session, its newest token, its last event."""

    def __init__(self, created: dict[str, Any], last: int = 2) -> None:
        self.session_id = created["session"]["id"]
        self.token = created["resume_token"]
        self.last = last

    @contextmanager
    def resume(self, base: str) -> Iterator[tuple[Talk, dict[str, Any]]]:
        with Talk(base, RESUME_PATH) as talk:
            self.ask(talk)
            yield talk, talk.recv()

    def ask(self, talk: Talk, **changed: Any) -> None:
        fields = {
            "session_id": self.session_id,
            "resume_token": self.token,
            "last_received_server_event_seq": self.last,
        }
        talk.send("session.resume", event_id="e1", **(fields | changed))

    def refused(self, base: str, **changed: Any) -> str:
        """Try to resume; the code of the refusal."""
        with Talk(base, RESUME_PATH) as talk:
            self.ask(talk, **changed)
            (event,), code, reason = talk.ends()
        if event["type"] == "session.resync_required":
            assert (code, reason) == (1008, event["reason"])
            return str(event["reason"])
        assert event["error"]["event_id"] == "e1"
        assert (code, reason) == (1008, event["error"]["code"])
        return str(reason)


def leave(base: str, omni: FakeOmni) -> tuple[Credential, FakeSession]:
    """Open a session and lose its connection."""
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        session = omni.opened.get(timeout=TIMEOUT_S)
    assert session.lease.is_detached.wait(TIMEOUT_S)
    return Credential(created), session


def beat(session: FakeSession) -> HeartbeatAck:
    return HeartbeatAck(session_id=session.session_id)


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["server_event_seq"] for event in events]
