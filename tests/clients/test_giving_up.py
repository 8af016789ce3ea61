"""How often a client asks for its session back, and when it stops asking."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clients.resumable import (
    WAIT_S,
    Server,
    client_of,
    cut_with_close_frame,
    cut_with_reset,
    ended,
    hang_up,
    next_of,
    refusing,
    say_nothing,
    saying,
)
from tests.clients.scripted import SESSION_ID, JumpingClock
from websockets.asyncio.client import ClientConnection, connect

from omniduplex.clients.acknowledgements import BATCH_S
from omniduplex.clients.duplex import (
    ConnectionResumed,
    DuplexConnectionError,
    DuplexSessionClosedError,
    ReconnectPolicy,
)
from omniduplex.protocol.duplex import (
    ResyncRequired,
    SessionClosed,
    SessionExpired,
    SessionReplaced,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "code",
    [
        "session_resume_expired",
        "invalid_resume_token",
        "unsupported_session_resume",
        "session_resume_conflict",
        "invalid_session_resume",
    ],
)
async def test_a_session_that_the_server_will_not_give_back_is_over(
    server: Server, code: str
) -> None:
    peer, url = server
    peer.answers.append(refusing(code))
    async with client_of(url) as client:
        events = client.events()
        await peer.cut(cut_with_reset)

        assert code in await ended(events)
        assert len(peer.resumes) == 1
        assert client.resume_token is None
        with pytest.raises(DuplexSessionClosedError, match=code):
            await client.commit()


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (ResyncRequired(session_id=SESSION_ID, reason="journal_gap"), "journal_gap"),
        (SessionExpired(session_id=SESSION_ID, reason="idle_ttl_expired"), "idle_ttl_expired"),
        (SessionClosed(session_id=SESSION_ID, epoch=0, reason="shutdown"), "shutdown"),
    ],
)
async def test_an_event_that_says_there_is_nothing_to_resume(
    server: Server, event: ResyncRequired | SessionExpired | SessionClosed, reason: str
) -> None:
    peer, url = server
    peer.answers.append(saying(event))
    async with client_of(url) as client:
        events = client.events()
        await peer.cut(cut_with_reset)

        assert reason in await ended(events)
        assert len(peer.resumes) == 1


async def test_other_refusals_are_tried_again_with_growing_waits(server: Server) -> None:
    peer, url = server
    peer.answers += [refusing("runtime_resume_failed"), hang_up, refusing("internal_error")]
    clock = JumpingClock()
    async with client_of(url, clock=clock) as client:
        resumed = client.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        await peer.cut(cut_with_reset)

        assert (await resumed).attempt == 4
        waits = [seconds for seconds in clock.slept if seconds != BATCH_S]
        assert waits == [0.5, 1.0, 2.0]


async def test_a_server_that_never_gives_it_back_is_given_up(server: Server) -> None:
    peer, url = server
    peer.answers += [refusing("runtime_resume_failed")] * 9
    clock = JumpingClock()
    async with client_of(url, clock=clock) as client:
        events = client.events()
        await peer.cut(cut_with_reset)

        assert "not resumed in 5 attempts: runtime_resume_failed" in await ended(events)
        assert len(peer.resumes) == 5
        waits = [seconds for seconds in clock.slept if seconds != BATCH_S]
        assert waits == [0.5, 1.0, 2.0, 4.0]


async def test_a_server_that_is_away_for_a_while(server: Server) -> None:
    peer, url = server
    refused = [False, True, True]

    async def dial(final_url: str) -> ClientConnection:
        if refused and refused.pop(0):
            raise ConnectionRefusedError("away")
        return await connect(final_url, compression=None)

    async with client_of(url, connect=dial, clock=JumpingClock()) as client:
        resumed = client.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        await peer.cut(cut_with_reset)

        assert (await resumed).attempt == 3


async def test_a_server_that_does_not_answer_is_asked_again(server: Server) -> None:
    peer, url = server
    async with client_of(url, clock=JumpingClock(), handshake_timeout_s=3.0) as client:
        peer.answers.append(say_nothing)
        resumed = client.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        await peer.cut(cut_with_reset)

        assert (await resumed).attempt >= 2


async def test_a_session_that_another_client_took_is_not_fetched_back(server: Server) -> None:
    peer, url = server
    async with client_of(url) as client:
        events = client.events()
        await peer.say(SessionReplaced(session_id=SESSION_ID, attachment_generation=0))
        await peer.cut(cut_with_close_frame)

        assert await ended(events) == "another connection took the session"
    assert peer.resumes == []


async def test_after_a_resync_the_session_ends_with_its_connection(server: Server) -> None:
    peer, url = server
    async with client_of(url) as client:
        events = client.events()
        assert client.resume_token == "token-0"
        await peer.say(ResyncRequired(session_id=SESSION_ID, reason="journal_overflow"))
        await next_of(events, ResyncRequired)
        assert client.resume_token is None
        with pytest.raises(DuplexSessionClosedError, match="cannot be resumed"):
            client.export_credentials()
        await peer.cut(cut_with_reset)

        assert "closed" in await ended(events)
    assert peer.resumes == []


async def test_a_client_that_is_told_not_to_reconnect(server: Server) -> None:
    peer, url = server
    async with client_of(url, reconnect=None) as client:
        events = client.events()
        await peer.cut(cut_with_reset)

        assert "closed" in await ended(events)
    assert peer.resumes == []


@pytest.mark.parametrize(("can_resume", "gives_token"), [(False, True), (True, False)])
async def test_a_session_that_cannot_be_resumed(
    server: Server, can_resume: bool, gives_token: bool
) -> None:
    peer, url = server
    peer.can_resume, peer.gives_token = can_resume, gives_token
    async with client_of(url) as client:
        events = client.events()
        await peer.cut(cut_with_reset)

        assert "closed" in await ended(events)
    assert peer.resumes == []


async def test_the_end_during_a_resume_is_the_end(server: Server) -> None:
    peer, url = server
    client = client_of(url)
    await client.open()
    peer.gate.clear()
    await peer.cut(cut_with_reset)
    await peer.asked()

    await client.close(timeout_s=0.05)

    with pytest.raises(DuplexSessionClosedError, match="client_close"):
        await client.commit()
    peer.gate.set()


async def test_a_session_without_its_connection_is_lost_before_it_is_open() -> None:
    async def dial(final_url: str) -> ClientConnection:
        raise ConnectionRefusedError("nobody there")

    with pytest.raises(DuplexConnectionError, match="nobody there"):
        await client_of("ws://127.0.0.1:1", connect=dial).open()


@given(st.integers(1, 60), st.integers(0, 2**32))
def test_a_wait_is_between_the_lowest_and_what_has_doubled_up_to_the_highest(
    attempt: int, seed: int
) -> None:
    policy = ReconnectPolicy(backoff_s=(0.25, 4.0))

    assert 0.25 <= policy.delay(attempt, random.Random(seed)) <= min(4.0, 0.25 * 2**attempt)
