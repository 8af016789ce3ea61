"""A session handed to another client, and the secret that does it."""

from __future__ import annotations

import msgspec
import pytest
from rich.pretty import pretty_repr
from tests.clients.resumable import (
    WAIT_S,
    LongestWaits,
    Server,
    cut_with_reset,
    end_of,
    refusing,
)
from tests.clients.scripted import MODEL, SESSION_ID, JumpingClock, done, words

from omniduplex.clients.duplex import (
    ConnectionResumed,
    DuplexClient,
    DuplexConnectionError,
    DuplexSessionClosedError,
    ReconnectPolicy,
    ResumeCredentials,
)
from omniduplex.protocol.duplex import CloseSession, Commit, SessionResumed

pytestmark = pytest.mark.anyio

GIVEN = ResumeCredentials(
    url="ws://h/v1/realtime",
    model=MODEL,
    session_id=SESSION_ID,
    resume_token="secret",
    last_server_event_seq=7,
)


def test_whoever_shows_credentials_does_not_show_the_secret() -> None:
    for shown in (repr(GIVEN), str(GIVEN), f"{GIVEN}", pretty_repr(GIVEN)):
        assert "secret" not in shown
        assert SESSION_ID in shown


def test_credentials_travel_as_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(GIVEN), type=ResumeCredentials) == GIVEN


async def test_a_client_says_what_another_needs(server: Server) -> None:
    peer, url = server
    async with DuplexClient(url, model=MODEL) as client:
        seen = client.wait_for("response.done", timeout_s=WAIT_S)
        await peer.say(words("r", "a"), done("r"))
        await seen

        assert client.export_credentials() == ResumeCredentials(
            url=client.url,
            model=MODEL,
            session_id=SESSION_ID,
            resume_token="token-0",
            last_server_event_seq=3,
        )


async def test_another_client_takes_over_and_the_first_ends(server: Server) -> None:
    peer, url = server
    async with DuplexClient(url, model=MODEL) as first:
        left = first.events()
        credentials = first.export_credentials()
        await peer.say(words("r", "not seen when exported"))
        second = DuplexClient.resume(credentials)
        events, answers = second.events(), second.responses()
        async with second:
            assert (second.session_id, second.model, second.url) == (SESSION_ID, MODEL, first.url)
            assert peer.resumes[0].last_received_server_event_seq == 1
            await peer.attached()
            await second.commit()
            assert isinstance((await peer.received(1))[0], Commit)
            await peer.say(done("r"))
            answer = await anext(answers)
            assert await answer.wait(WAIT_S) == "completed"
            assert answer.transcript == "not seen when exported"
            assert [type(event) for event in events.drain()][:2] == [
                ConnectionResumed,
                SessionResumed,
            ]
            with pytest.raises(DuplexSessionClosedError, match="another connection took"):
                await end_of(left)
    # Only the one that has it ends it.
    assert sum(isinstance(command, CloseSession) for command in peer.commands) == 1


async def test_a_client_that_took_over_reconnects_as_well(server: Server) -> None:
    peer, url = server
    async with (
        DuplexClient(url, model=MODEL) as first,
        DuplexClient.resume(first.export_credentials()) as second,
    ):
        resumed = second.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        await peer.cut(cut_with_reset)
        await resumed

        assert [seen.resume_token for seen in peer.resumes] == ["token-0", "token-1"]


async def test_credentials_are_good_for_one_resume(server: Server) -> None:
    _, url = server
    async with DuplexClient(url, model=MODEL) as first:
        credentials = first.export_credentials()
        async with DuplexClient.resume(credentials):
            with pytest.raises(DuplexSessionClosedError, match="invalid_resume_token"):
                await DuplexClient.resume(credentials).open()


async def test_a_take_over_that_fails_for_now_is_tried_again(server: Server) -> None:
    peer, url = server
    async with DuplexClient(url, model=MODEL) as first:
        peer.answers.append(refusing("runtime_resume_failed"))
        second = DuplexClient.resume(
            first.export_credentials(), clock=JumpingClock(), rng=LongestWaits()
        )
        events = second.events()
        async with second:
            assert events.drain()[0] == ConnectionResumed(attempt=2)


@pytest.mark.parametrize("policy", [None, ReconnectPolicy(max_attempts=1)])
async def test_a_take_over_without_more_attempts(
    server: Server, policy: ReconnectPolicy | None
) -> None:
    peer, url = server
    async with DuplexClient(url, model=MODEL) as first:
        peer.answers.append(refusing("runtime_resume_failed"))
        second = DuplexClient.resume(first.export_credentials(), reconnect=policy)

        with pytest.raises(DuplexConnectionError, match="runtime_resume_failed"):
            await second.open()


async def test_there_are_no_credentials_of_a_session_that_is_not_there(server: Server) -> None:
    _, url = server
    client = DuplexClient(url, model=MODEL)
    with pytest.raises(DuplexSessionClosedError, match="not open"):
        client.export_credentials()
    async with client:
        pass
    with pytest.raises(DuplexSessionClosedError, match="client_close"):
        client.export_credentials()
