"""A session outlives its connection: real cuts on loopback, a scripted server behind them."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest
from tests.clients.resumable import (
    CUTS,
    WAIT_S,
    Cut,
    Server,
    client_of,
    cut_with_reset,
    hang_up,
    next_of,
)
from tests.clients.scripted import SESSION_ID, JumpingClock, VirtualClock, audio, done, words

from omniduplex.clients.acknowledgements import BATCH_S
from omniduplex.clients.duplex import (
    ConnectionResumed,
)
from omniduplex.protocol.duplex import (
    AppendAudio,
    ClearInput,
    CloseSession,
    Commit,
    HeartbeatAck,
    SessionClosed,
    SessionExpiring,
    SessionResumed,
    TranscriptDelta,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.__name__)
async def test_an_answer_goes_on_where_it_was_cut(server: Server, cut: Cut) -> None:
    peer, url = server
    clock = JumpingClock()
    async with client_of(url, clock=clock) as client:
        events, answers = client.events(), client.responses()
        await peer.say(audio("r", b"abcd"), words("r", "one"))
        await next_of(events, TranscriptDelta)

        await peer.cut(cut)
        await peer.say(audio("r", b"efgh"), words("r", " two"))
        await peer.attached()
        await peer.say(words("r", " three"), done("r"))
        answer = await anext(answers)

        assert await answer.wait(WAIT_S) == "completed"
        assert answer.transcript == "one two three"
        assert b"".join([chunk async for chunk in answer.audio()]) == b"abcdefgh"
        first, second, *_ = events.drain()
        assert (first, type(second)) == (ConnectionResumed(attempt=1), SessionResumed)
        assert [seen.last_received_server_event_seq for seen in peer.resumes] == [3]
        assert [seen.resume_token for seen in peer.resumes] == ["token-0"]
        assert client.resume_token == peer.token == "token-1"
        assert (client.events_missed, client.commands_in_doubt) == (0, 0)
        # The first attempt is made at once.
        assert set(clock.slept) <= {BATCH_S}


async def test_each_resume_uses_the_token_of_the_last(server: Server) -> None:
    peer, url = server
    async with client_of(url) as client:
        for _ in range(3):
            resumed = client.wait_for(SessionResumed, timeout_s=WAIT_S)
            await peer.cut(cut_with_reset)
            await resumed

        assert [seen.resume_token for seen in peer.resumes] == ["token-0", "token-1", "token-2"]
        assert client.session_id == SESSION_ID


@pytest.mark.parametrize("numbered", ["not", "as_cursor", "as_newest"])
async def test_a_replay_of_what_has_arrived_is_not_shown_again(
    server: Server, numbered: Literal["not", "as_cursor", "as_newest"]
) -> None:
    peer, url = server
    peer.replays_all, peer.numbers_resumed = True, numbered
    async with client_of(url) as client:
        events = client.events()
        await peer.say(words("r", "a"), words("r", "b"))
        resumed = client.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        await peer.cut(cut_with_reset)
        await peer.say(words("r", "c"))
        await resumed
        await peer.attached()
        await peer.say(words("r", "d"), done("r"))
        answer = await anext(client.responses())
        await answer.wait(WAIT_S)

        deltas = [event.delta for event in events.drain() if isinstance(event, TranscriptDelta)]
        assert deltas == ["a", "b", "c", "d"]
        assert client.events_missed == 0
        assert client.resume_token == "token-1"


async def test_events_that_the_server_lost_are_counted(server: Server) -> None:
    peer, url = server
    peer.answers.append(peer.give_back_without_replay)
    async with client_of(url) as client:
        resumed = client.wait_for(SessionResumed, timeout_s=WAIT_S)
        finished = client.wait_for("response.done", timeout_s=WAIT_S)
        await peer.cut(cut_with_reset)
        await peer.say(words("r", "a"), words("r", "b"))
        await resumed
        await peer.attached()
        await peer.say(done("r"))
        await finished

        assert client.events_missed == 2


async def test_commands_of_the_meantime_are_held_and_follow_in_order(server: Server) -> None:
    peer, url = server
    async with client_of(url) as client:
        await client.append_audio(b"\1\0")
        await peer.received(1)
        peer.gate.clear()
        await peer.cut(cut_with_reset)
        await peer.asked()

        for sample in (b"\2\0", b"\3\0", b"\4\0"):
            await client.append_audio(sample)
        await client.commit()
        assert client.commands_held == 4
        peer.gate.set()
        await client.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        await client.clear_input()
        got = await peer.received(5)

        sent = [command.audio for command in got if isinstance(command, AppendAudio)]
        assert sent == [b"\2\0", b"\3\0", b"\4\0"]
        assert [type(command) for command in got[3:]] == [Commit, ClearInput]
        assert client.commands_held == 0
    # The first may have arrived or not, as far as the client knows.
    assert client.commands_in_doubt == 1


async def test_held_commands_survive_a_resume_that_breaks_off(server: Server) -> None:
    peer, url = server
    async with client_of(url, clock=JumpingClock()) as client:
        peer.answers += [hang_up, hang_up]
        peer.gate.clear()
        await peer.cut(cut_with_reset)
        await peer.asked()
        await client.commit()
        resumed = client.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        peer.gate.set()

        assert (await resumed).attempt == 3
        assert isinstance((await peer.received(1))[0], Commit)
        assert client.commands_in_doubt == 0


async def test_what_a_heartbeat_has_shown_to_have_arrived_is_not_in_doubt(
    server: Server, clock: VirtualClock
) -> None:
    peer, url = server
    async with client_of(url, clock=clock, heartbeat_interval_s=7) as client:
        await client.append_audio(b"\1\0")
        await client.append_audio(b"\2\0")
        answered = client.wait_for(HeartbeatAck, timeout_s=WAIT_S)
        await clock.sleeping(2)
        clock.advance(7)
        await answered
        await client.append_audio(b"\3\0")
        await peer.received(3)

        resumed = client.wait_for(ConnectionResumed, timeout_s=WAIT_S)
        await peer.cut(cut_with_reset)
        await resumed

        assert client.commands_in_doubt == 1


async def test_events_before_the_resume_come_after_the_word_of_it(server: Server) -> None:
    peer, url = server
    peer.answers.append(peer.give_back_late)
    async with client_of(url) as client:
        events = client.events()
        await peer.cut(cut_with_reset)
        await peer.say(words("r", "late"))
        got = await next_of(events, SessionResumed)
        got += await next_of(events, TranscriptDelta)

    assert [type(event) for event in got] == [
        ConnectionResumed,
        TranscriptDelta,
        SessionResumed,
        TranscriptDelta,
    ]


async def test_a_goodbye_of_the_meantime_is_said_after_the_resume(server: Server) -> None:
    peer, url = server
    client = client_of(url)
    await client.open()
    events = client.events()
    peer.gate.clear()
    await peer.cut(cut_with_reset)
    await peer.asked()
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    assert client.commands_held == 1
    peer.gate.set()

    await closing

    assert isinstance(peer.commands[-1], CloseSession)
    assert [type(event) async for event in events] == [
        ConnectionResumed,
        SessionResumed,
        SessionClosed,
    ]


async def test_a_word_of_the_coming_end_is_an_event_like_others(server: Server) -> None:
    peer, url = server
    warning = SessionExpiring(session_id=SESSION_ID, reason="idle", time_left_ms=10_000)
    async with client_of(url) as client:
        expiring = client.wait_for(SessionExpiring, timeout_s=WAIT_S)
        await peer.say(warning)

        assert (await expiring).time_left_ms == 10_000
