"""What a client missed: replayed once, in order, and as far as it is kept."""

from __future__ import annotations

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.duplex.resuming import (
    PATH,
    RESUME_PATH,
    Credential,
    beat,
    leave,
    numbers,
    resumable_omni,
)
from tests.entrypoints.fake_omni import MODEL, FakeOmni
from tests.entrypoints.talk import Talk

from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.entrypoints.openai.app import create_app

pytestmark = pytest.mark.e2e


@pytest.fixture
def omni() -> FakeOmni:
    return resumable_omni()


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
