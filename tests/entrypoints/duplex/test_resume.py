"""`session.resume`: who gets a session, by which credential, and what is refused."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.duplex.resuming import PATH, Credential, beat, leave, numbers, resumable_omni
from tests.entrypoints.fake_omni import MODEL, FakeOmni, FakeSession
from tests.entrypoints.talk import TIMEOUT_S, Talk

from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.patience import SEND_TIMEOUT_S

pytestmark = pytest.mark.e2e


@pytest.fixture
def omni() -> FakeOmni:
    return resumable_omni()


def test_session_created_carries_the_credential(base: str, omni: FakeOmni) -> None:
    omni.limit(disconnect_grace_s=12.5)
    with Talk(base, PATH) as talk:
        created = talk.recv()

    assert created["attachment_generation"] == 1
    assert created["disconnect_grace_s"] == 12.5
    assert re.fullmatch(r"[\w-]{43}", created["resume_token"])


@pytest.mark.parametrize("path", ["/v1/realtime", PATH])
def test_no_credential_where_nothing_can_be_resumed(base: str, omni: FakeOmni, path: str) -> None:
    omni.resumable = path != PATH
    with Talk(base, path) as talk:
        created = talk.recv()
        session = omni.opened.get(timeout=TIMEOUT_S)

    assert "resume_token" not in created
    assert "attachment_generation" not in created
    assert "disconnect_grace_s" not in created
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


def test_a_dialect_taken_up_late_is_told_the_credential_then(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/realtime") as talk:
        *before, granting = take_up_duplex(talk)
        talk.send("session.update", session=TAKE_UP_DUPLEX)
        again = talk.until("session.updated")[-1]

    assert numbers([*before, granting, again]) == [1, 2, 3, 4]
    assert granting["attachment_generation"] == 1
    assert granting["disconnect_grace_s"] == omni.pipeline.duplex_session.disconnect_grace_s
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
    assert resumed["disconnect_grace_s"] == omni.pipeline.duplex_session.disconnect_grace_s
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


def test_wrong_tokens_keep_no_owner_out(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as owner:
        created, _ = owner.until("session.updated")
        session = omni.opened.get(timeout=TIMEOUT_S)
        credential = Credential(created)
        for attempt in range(30):
            assert credential.refused(base, resume_token=f"{attempt}") == "invalid_resume_token"
        owner.send("session.heartbeat")
        assert owner.recv()["type"] == "session.heartbeat_ack"
    assert session.lease.is_detached.wait(TIMEOUT_S)
    for wrong in (credential.token[:-1], credential.token.swapcase(), "", "x" * 100_000):
        assert credential.refused(base, resume_token=wrong) == "invalid_resume_token"
    with credential.resume(base) as (_, resumed):
        assert resumed["attachment_generation"] == 2
    assert session.lease.generation == 1


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


def test_session_close_ends_a_resumable_session_for_good(base: str, omni: FakeOmni) -> None:
    with Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        talk.send("session.close")
        events, code, reason = talk.ends()

    assert events[-1]["type"] == "session.closed"
    assert (code, reason) == (1000, "client_close")
    assert Credential(created).refused(base) == "session_resume_expired"
