"""`session.resume`: who gets a session, what is replayed, and what the one before is told."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.fake_omni import MODEL, FakeOmni, FakeSession
from tests.entrypoints.talk import TIMEOUT_S, Talk

from omniduplex.entrypoints.duplex.serving import SEND_TIMEOUT_S, DuplexServing
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.protocol.duplex import HeartbeatAck

pytestmark = pytest.mark.e2e

PATH = "/v1/duplex?model=m"
RESUME_PATH = "/v1/duplex?model=m&autostart=0"


@pytest.fixture
def omni() -> FakeOmni:
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


def test_session_created_carries_the_credential(base: str) -> None:
    with Talk(base, PATH) as talk:
        created = talk.recv()

    assert created["attachment_generation"] == 1
    assert re.fullmatch(r"[\w-]{43}", created["resume_token"])


@pytest.mark.parametrize("path", ["/v1/realtime", PATH])
def test_no_credential_where_nothing_can_be_resumed(base: str, omni: FakeOmni, path: str) -> None:
    omni.resumable = path != PATH
    with Talk(base, path) as talk:
        created = talk.recv()
        session = omni.opened.get(timeout=TIMEOUT_S)

    assert "resume_token" not in created
    assert "attachment_generation" not in created
    assert session.released.wait(TIMEOUT_S)
    assert session.close_reason == "disconnect"


TAKE_UP_DUPLEX = {"extensions": ["duplex"]}


def take_up_duplex(talk: Talk) -> list[dict[str, Any]]:
    """Begin in the OpenAI dialect, and change: what came, the update that grants it last."""
    events = talk.until("session.created")
    talk.send("session.update", session={"instructions": "be brief"})
    events += talk.until("session.updated")
    talk.send("session.update", session=TAKE_UP_DUPLEX)
    return events + talk.until("session.updated")


def test_a_dialect_taken_up_late_is_told_the_credential_then(base: str) -> None:
    with Talk(base, "/v1/realtime") as talk:
        *before, granting = take_up_duplex(talk)
        talk.send("session.update", session=TAKE_UP_DUPLEX)
        again = talk.until("session.updated")[-1]

    assert numbers([*before, granting, again]) == [1, 2, 3, 4]
    assert granting["attachment_generation"] == 1
    assert re.fullmatch(r"[\w-]{43}", granting["resume_token"])
    assert not any("resume_token" in event for event in [*before, again])


def test_a_dialect_taken_up_late_resumes_nothing_that_its_model_cannot(
    base: str, omni: FakeOmni
) -> None:
    omni.resumable = False
    with Talk(base, "/v1/realtime") as talk:
        assert "resume_token" not in take_up_duplex(talk)[-1]
        session = omni.opened.get(timeout=TIMEOUT_S)

    assert session.released.wait(TIMEOUT_S)
    assert session.close_reason == "disconnect"


def leave_late(base: str, omni: FakeOmni) -> tuple[Credential, FakeSession]:
    """Take up the duplex dialect with the third event, and lose the connection after the fourth."""
    with Talk(base, "/v1/realtime") as talk:
        granting = take_up_duplex(talk)[-1]
        talk.send("session.heartbeat")
        assert talk.recv()["server_event_seq"] == 4
        session = omni.opened.get(timeout=TIMEOUT_S)
    assert session.lease.is_detached.wait(TIMEOUT_S)
    return Credential(granting, last=4), session


def test_a_session_that_took_up_the_dialect_late_is_carried_on(base: str, omni: FakeOmni) -> None:
    credential, session = leave_late(base, omni)
    omni.loop.call_soon_threadsafe(session.emit, beat(session))
    with credential.resume(base) as (talk, resumed):
        missed = talk.recv()
        talk.send("session.heartbeat")
        live = talk.recv()

    assert resumed["type"] == "session.resumed"
    assert resumed["session"]["instructions"] == "be brief"
    assert resumed["attachment_generation"] == 2
    assert numbers([missed, live]) == [5, 6]
    assert session.close_reason is None


def test_the_journal_of_a_dialect_taken_up_late_begins_there(base: str, omni: FakeOmni) -> None:
    credential, _ = leave_late(base, omni)
    credential.last = 1
    assert credential.refused(base) == "journal_gap"
    credential.last = 2
    with credential.resume(base) as (talk, _):
        granting, ack = talk.recv(), talk.recv()

    assert [granting["type"], ack["type"]] == ["session.updated", "session.heartbeat_ack"]
    assert numbers([granting, ack]) == [3, 4]
    assert "resume_token" not in granting


def test_a_detached_session_is_carried_on(base: str, omni: FakeOmni) -> None:
    credential, session = leave(base, omni)
    with credential.resume(base) as (talk, resumed):
        talk.send("session.heartbeat")
        ack = talk.recv()
        assert not session.lease.is_detached.is_set()

    assert resumed["type"] == "session.resumed"
    assert resumed["session_id"] == session.session_id
    assert resumed["session"]["id"] == session.session_id
    assert resumed["attachment_generation"] == 2
    assert resumed["resume_token"] != credential.token
    assert resumed["server_event_seq"] == credential.last
    assert (ack["type"], ack["server_event_seq"]) == ("session.heartbeat_ack", 3)


def test_the_session_object_is_that_of_now(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        talk.send("session.update", session={"instructions": "be brief"})
        talk.until("session.updated")
    with Credential(created).resume(base) as (_, resumed):
        assert resumed["session"]["instructions"] == "be brief"


def test_what_was_missed_is_replayed_once_and_in_order(base: str, omni: FakeOmni) -> None:
    omni.script = ("resp_1",) * 5
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        talk.send("response.create")
        seen = [talk.recv() for _ in range(5)]
    credential = Credential(created, last=4)
    with credential.resume(base) as (talk, resumed):
        replayed = [talk.recv() for _ in range(3)]
        talk.send("session.heartbeat")
        live = talk.recv()

    assert resumed["type"] == "session.resumed"
    assert replayed == seen[2:]
    assert live["server_event_seq"] == 8


def test_events_made_without_a_connection_are_replayed(base: str, omni: FakeOmni) -> None:
    credential, session = leave(base, omni)
    for _ in range(10):
        omni.loop.call_soon_threadsafe(session.emit, beat(session))
    with credential.resume(base) as (talk, _):
        assert numbers([talk.recv() for _ in range(10)]) == list(range(3, 13))


def test_events_that_come_during_the_replay_come_after_it(base: str, omni: FakeOmni) -> None:
    omni.script, omni.delta_bytes = ("resp_1",) * 40, 64 * 1024
    credential, session = leave(base, omni)
    omni.loop.call_soon_threadsafe(session.speak)
    with credential.resume(base) as (talk, _):
        omni.loop.call_soon_threadsafe(session.speak)
        events = [talk.recv() for _ in range(80)]

    assert numbers(events) == list(range(3, 83))


def test_a_replay_from_the_start_tells_no_old_token(base: str, omni: FakeOmni) -> None:
    credential, _ = leave(base, omni)
    credential.last = 0
    with credential.resume(base) as (talk, _):
        created, updated = talk.recv(), talk.recv()

    assert [created["type"], updated["type"]] == ["session.created", "session.updated"]
    assert "resume_token" not in created


def test_refusals_are_numbered_and_replayed_like_all_events(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        talk.socket.send("{nope")
        error = talk.recv()
    with Credential(created).resume(base) as (talk, _):
        assert talk.recv() == error

    assert (error["type"], error["server_event_seq"]) == ("error", 3)


def test_the_checks_come_in_the_order_of_the_contract(base: str, omni: FakeOmni) -> None:
    credential, session = leave(base, omni)
    wrong = {"resume_token": "wrong", "last_received_server_event_seq": 99}

    assert credential.refused(base, session_id=7, **wrong) == "invalid_session_resume"
    assert credential.refused(base, session_id="nobody", **wrong) == "session_resume_expired"
    assert credential.refused(base, **wrong) == "invalid_resume_token"
    del wrong["resume_token"]
    assert credential.refused(base, **wrong) == "session_resume_conflict"
    with Talk(base, "/v1/realtime") as openai:
        other = openai.recv()["session"]["id"]
        assert credential.refused(base, session_id=other) == "unsupported_session_resume"
    assert session.lease.generation == 0
    with credential.resume(base) as (_, resumed):
        assert resumed["type"] == "session.resumed"


@pytest.mark.parametrize(
    ("cursor", "code"),
    [
        (-1, "invalid_session_resume"),
        (1.5, "invalid_session_resume"),
        ("2", "invalid_session_resume"),
        ([], "invalid_session_resume"),
        (3, "session_resume_conflict"),
        (2**64, "session_resume_conflict"),
    ],
)
def test_a_senseless_cursor_is_refused(
    base: str, omni: FakeOmni, cursor: object, code: str
) -> None:
    credential, _ = leave(base, omni)

    assert credential.refused(base, last_received_server_event_seq=cursor) == code


def test_what_the_engine_refuses_leaves_the_session_to_be_resumed(
    base: str, omni: FakeOmni
) -> None:
    credential, session = leave(base, omni)

    async def broken() -> None:
        raise RuntimeError("stage died")

    omni.resuming = broken
    assert credential.refused(base) == "runtime_resume_failed"
    omni.resuming = FakeOmni().resuming
    with credential.resume(base) as (_, resumed):
        assert resumed["type"] == "session.resumed"
    assert session.lease.generation == 1


def test_a_session_that_ended_meanwhile_is_expired(base: str, omni: FakeOmni) -> None:
    credential, session = leave(base, omni)
    omni.loop.call_soon_threadsafe(session.expire, "disconnect_grace_expired")
    assert session.released.wait(TIMEOUT_S)

    assert credential.refused(base) == "session_resume_expired"


def test_a_takeover_tells_the_old_connection_and_closes_it(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as old:
        created, _ = old.until("session.updated")
        with Credential(created).resume(base) as (new, resumed):
            events, code, reason = old.ends()
            new.send("session.heartbeat")
            ack = new.recv()
        session = omni.opened.get(timeout=TIMEOUT_S)
        assert session.lease.is_detached.wait(TIMEOUT_S)

    assert resumed["attachment_generation"] == 2
    (replaced,) = events
    assert (replaced["type"], replaced["attachment_generation"]) == ("session.replaced", 1)
    assert replaced["session_id"] == session.session_id
    assert (code, reason) == (1000, "session_replaced")
    assert (ack["type"], ack["server_event_seq"]) == ("session.heartbeat_ack", 3)
    assert session.close_reason is None


def test_a_takeover_from_a_connection_that_does_not_read(base: str, omni: FakeOmni) -> None:
    omni.script, omni.delta_bytes = ("resp_1",) * 100, 64 * 1024
    with Talk(base, PATH, max_queue=1) as old:
        created, _ = old.until("session.updated")
        old.send("response.create")
        session = omni.opened.get(timeout=TIMEOUT_S)
        with Credential(created).resume(base) as (new, resumed):
            assert resumed["type"] == "session.resumed"
            assert numbers([new.recv() for _ in range(100)]) == list(range(3, 103))
        old.socket.socket.close()

    assert session.close_reason is None


def test_a_connection_that_never_reads_is_dropped_and_the_session_waits(
    omni: FakeOmni, serve_app: ServeApp
) -> None:
    omni.limit(resume_replay_max_bytes_per_session=64 * 1024 * 1024)
    serving = DuplexServing(omni, MODEL, send_timeout_s=0.1)
    base = serve_app(create_app(omni, serving=serving))
    omni.script, omni.delta_bytes = ("resp_1",) * 100, 256 * 1024
    with Talk(base, PATH, max_queue=1) as stuck:
        created, _ = stuck.until("session.updated")
        session = omni.opened.get(timeout=TIMEOUT_S)
        stuck.send("response.create")
        assert session.lease.is_detached.wait(TIMEOUT_S)
        serving._send_timeout_s = SEND_TIMEOUT_S  # the next client reads, as quickly as it can
        credential = Credential(created)
        with credential.resume(base) as (talk, resumed):
            assert resumed["type"] == "session.resumed"
            assert numbers([talk.recv() for _ in range(100)]) == list(range(3, 103))
        stuck.socket.socket.shutdown(socket.SHUT_RDWR)


def test_a_token_opens_once(base: str, omni: FakeOmni) -> None:
    credential, _ = leave(base, omni)
    with credential.resume(base) as (talk, resumed):
        assert credential.refused(base) == "invalid_resume_token"
        talk.send("session.event_ack", server_event_seq=2)
        talk.send("session.heartbeat")
        talk.recv()
    assert credential.refused(base) == "invalid_resume_token"
    credential.token = resumed["resume_token"]
    with credential.resume(base) as (_, again):
        assert again["attachment_generation"] == 3


def test_a_client_that_never_got_the_new_token_comes_back_with_the_old(
    base: str, omni: FakeOmni
) -> None:
    credential, session = leave(base, omni)
    for generation in (2, 3, 4):
        with credential.resume(base) as (_, resumed):
            assert resumed["attachment_generation"] == generation
        assert session.lease.is_detached.wait(TIMEOUT_S)


def test_what_was_acknowledged_is_not_replayed(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        talk.send("session.event_ack", server_event_seq=2)
        talk.send("session.heartbeat")
        talk.recv()
    credential = Credential(created, last=1)

    assert credential.refused(base) == "journal_gap"
    credential.last = 2
    with credential.resume(base) as (talk, _):
        assert talk.recv()["server_event_seq"] == 3


def test_a_client_that_never_acks_hears_of_the_limits_only_when_it_resumes(
    omni: FakeOmni, serve_app: ServeApp
) -> None:
    omni.limit(resume_replay_max_bytes_per_session=100_000)
    base = serve_app(create_app(omni))
    omni.script, omni.delta_bytes = ("resp_1",) * 100, 1500
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        talk.send("response.create")
        seen = [talk.recv() for _ in range(100)]
    credential = Credential(created, last=2)

    assert {event["type"] for event in seen} == {"response.output_audio.delta"}
    with Talk(base, RESUME_PATH) as talk:
        credential.ask(talk)
        (resync,), code, _ = talk.ends()
    assert (resync["type"], resync["reason"]) == ("session.resync_required", "journal_gap")
    assert code == 1008
    # The number of the newest event is told: from there the session goes on.
    credential.last = resync["server_event_seq"]
    assert credential.last == 102
    with credential.resume(base) as (talk, resumed):
        assert resumed["type"] == "session.resumed"


def test_the_journal_forgets_with_time(omni: FakeOmni, serve_app: ServeApp) -> None:
    now = [0.0]
    serving = DuplexServing(omni, MODEL, clock=lambda: now[0])
    base = serve_app(create_app(omni, serving=serving))
    credential, _ = leave(base, omni)
    credential.last = 1
    now[0] = omni.pipeline.duplex_session.resume_replay_ttl_s + 1

    assert credential.refused(base) == "journal_gap"


def test_while_one_resumes_another_is_in_conflict(base: str, omni: FakeOmni) -> None:
    credential, session = leave(base, omni)
    going_on = asyncio.Event()

    async def wait() -> None:
        await going_on.wait()

    omni.resuming = wait
    with Talk(base, RESUME_PATH) as first:
        credential.ask(first)
        while session.lease.generation == 0:  # the first is in the engine
            with Talk(base, RESUME_PATH):
                pass
        assert credential.refused(base) == "session_resume_conflict"
        omni.loop.call_soon_threadsafe(going_on.set)
        assert first.recv()["type"] == "session.resumed"


def test_an_old_connection_that_leaves_during_the_takeover_changes_nothing(
    base: str, omni: FakeOmni
) -> None:
    going_on = asyncio.Event()

    async def wait() -> None:
        await going_on.wait()

    omni.resuming = wait
    with Talk(base, RESUME_PATH) as new:
        with Talk(base, PATH) as old:
            created, _ = old.until("session.updated")
            session = omni.opened.get(timeout=TIMEOUT_S)
            Credential(created).ask(new)
            while session.lease.generation == 0:
                old.send("session.heartbeat")
                old.until("session.heartbeat_ack")
        omni.loop.call_soon_threadsafe(going_on.set)
        assert new.until("session.resumed")
        new.send("session.heartbeat")
        new.until("session.heartbeat_ack")
        assert not session.lease.is_detached.is_set()
    assert session.close_reason is None


def test_commands_of_a_replaced_connection_are_not_run(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as old:
        created, _ = old.until("session.updated")
        session = omni.opened.get(timeout=TIMEOUT_S)
        with Credential(created).resume(base) as (new, _):
            old.ends()
            with pytest.raises(Exception, match="1000"):
                old.socket.send(json.dumps({"type": "session.heartbeat"}))
            new.send("session.heartbeat")
            new.until("session.heartbeat_ack")
            assert len(session.commands) == 1


def test_session_close_ends_a_resumable_session_for_good(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        talk.send("session.close")
        events, code, reason = talk.ends()

    assert events[-1]["type"] == "session.closed"
    assert (code, reason) == (1000, "client_close")
    assert Credential(created).refused(base) == "session_resume_expired"
