"""Session bugs that other servers had, each by an id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.entrypoints.running import running
from tests.entrypoints.talk import Talk
from tests.faults.resumable_echo import resumable_echo
from tests.faults.surviving_client import Refused, SurvivingClient
from tests.faults.tcp_proxy import reset
from tests.faults.test_chaos import opened_sessions
from tests.faults.test_cuts import answer, item_ids, retrieve, tone

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PATH = "/v1/duplex?model=m"


@contextmanager
def served(**limits: object) -> Iterator[str]:
    with DuplexOmni(pipeline=resumable_echo(**limits)) as omni, running(create_app(omni)) as server:
        yield server.base


def open_when_free(base: str) -> None:
    """Open and close a session as soon as a slot is free; the test's timeout is the limit."""
    while True:
        with Talk(base, PATH) as talk:
            if talk.recv()["type"] == "session.created":
                talk.send("session.close")
                talk.ends()
                return


def resumed_once(base: str) -> SurvivingClient:
    """A client that came back within the grace, however often a busy machine takes longer."""
    while True:
        client = SurvivingClient(base)
        client.open()
        try:
            client.resume()
        except Refused:
            client.abandon()
        else:
            return client


def test_b43_the_grace_ends_and_frees_the_slot_without_an_idle_limit() -> None:
    limits = {"idle_ttl_s": None, "disconnect_grace_s": 1.0, "reaper_interval_s": 0.01}
    with served(max_sessions=1, **limits) as base:
        client = resumed_once(base)
        client.abandon()
        open_when_free(base)
        with pytest.raises(Refused) as refused:
            client.resume()
        client.abandon()

    assert refused.value.code == "session_resume_expired"


def test_b45_reopening_works_for_ever() -> None:
    with served(max_sessions=1) as base:
        for _ in range(200):
            client = SurvivingClient(base)
            client.open()
            client.step(
                [
                    {"type": "input_audio_buffer.append", "audio": tone(0.16, 300)},
                    {"type": "input_audio_buffer.commit"},
                ],
                "input_audio_buffer.committed",
            )
            answer(client)
            client.close()


def test_b47_an_interruption_and_a_lost_socket_at_once_leave_no_slot_stuck() -> None:
    limits = {"disconnect_grace_s": 0.01, "reaper_interval_s": 0.005}
    with served(max_sessions=4, **limits) as base:
        before = opened_sessions(base)
        while opened_sessions(base) - before < 200:
            with Talk(base, PATH) as talk:
                if talk.recv()["type"] == "error":  # the graces of the last four still run
                    continue
                talk.send("input_audio_buffer.append", audio=tone(0.3, 300))
                talk.send("input_audio_buffer.commit")
                talk.send("response.create")
                talk.until("response.output_audio.delta")
                talk.send("response.cancel")
                reset(talk.socket.socket)
                talk.socket.socket.shutdown(2)
        for _ in range(4):
            open_when_free(base)


def test_b51_a_conversation_of_ten_turns_is_whole_after_ten_resumes() -> None:
    with served(max_sessions=1) as base:
        client = SurvivingClient(base)
        client.open()
        for turn in range(10):
            text = {"type": "input_text", "text": f"this is turn {turn}"}
            item = {"id": f"item_{turn}", "type": "message", "role": "user", "content": [text]}
            client.step(
                [{"type": "conversation.item.create", "item": item}], "conversation.item.done"
            )
            answer(client)
            client.resume()
        items = [retrieve(client, item_id) for item_id in item_ids(client.events)]
        client.close()

    said = [part.get("text") or part["transcript"] for item in items for part in item["content"]]
    assert said == [
        words
        for turn in range(10)
        for words in (f"this is turn {turn}", f"You said this is turn {turn}")
    ]
    assert client.resumes == 10


def test_b52_the_longest_life_of_a_session_is_told_beforehand() -> None:
    limits = {"max_session_s": 3.0, "expiry_warning_s": 2.9, "reaper_interval_s": 0.01}
    with served(max_sessions=1, **limits) as base, Talk(base, PATH) as talk:
        created, _ = talk.until("session.updated")
        events, code, reason = talk.ends()

    assert created["session"]["expires_at"] > 1_700_000_000
    warning, end = events
    assert (warning["type"], warning["reason"]) == ("session.expiring", "session_expired")
    assert 0 < warning["time_left_ms"] <= 2900
    assert (end["type"], end["reason"]) == ("session.closed", "session_expired")
    assert (code, reason) == (1000, "session_expired")
