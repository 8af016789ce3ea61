"""Two connections of one session: who has it, and what the other is told."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.entrypoints.duplex.resuming import (
    PATH,
    RESUME_PATH,
    Credential,
    leave,
    numbers,
    resumable_omni,
)
from tests.entrypoints.fake_omni import FakeOmni
from tests.entrypoints.talk import TIMEOUT_S, Talk

pytestmark = pytest.mark.e2e


@pytest.fixture
def omni() -> FakeOmni:
    return resumable_omni()


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
