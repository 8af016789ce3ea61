"""How every client opens a session and leaves it, whatever carries it."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from tests.clients.conftest import Connect
from tests.clients.scripted import (
    MODEL,
    SESSION_ID,
    InlinePeer,
    JumpingClock,
    Peer,
    VirtualClock,
)

from omniduplex.clients.duplex import (
    DuplexClient,
    DuplexClientBase,
    DuplexClientError,
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
    InlineDuplexClient,
    SessionConfig,
)
from omniduplex.protocol.duplex import (
    DuplexError,
)

pytestmark = pytest.mark.anyio


async def test_entering_opens_a_session_and_leaving_closes_it(
    client: DuplexClientBase, peer: Peer
) -> None:
    async with client:
        assert client.session_id == SESSION_ID
        assert client.session_info.capabilities.supports_barge_in
        assert peer.config is not None
        assert peer.config.model == MODEL
        assert peer.config.auto_response

    assert peer.close_reasons == ["client_close"]


async def test_an_error_in_the_body_still_says_goodbye(
    client: DuplexClientBase, peer: Peer
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with client:
            _ = 1 / 0

    assert peer.close_reasons == ["client_close"]


async def test_a_client_is_for_one_session(client: DuplexClientBase, peer: Peer) -> None:
    await client.open()
    with pytest.raises(DuplexClientError, match="make another"):
        await client.open()
    await client.append_audio(bytes(320))  # the session is as it was
    await client.close()
    with pytest.raises(DuplexClientError, match="make another"):
        await client.open()

    assert peer.close_reasons == ["client_close"]


async def test_a_refused_session_names_its_code(client: DuplexClientBase, peer: Peer) -> None:
    peer.refusal = DuplexError("resource_exhausted", "full")

    with pytest.raises(DuplexProtocolError) as caught:
        await client.open()
    assert caught.value.code == "resource_exhausted"


async def test_a_server_that_does_not_answer_is_given_up(peer: Peer, clock: JumpingClock) -> None:
    peer.silent = True
    client = InlineDuplexClient(InlinePeer(peer), model=MODEL, handshake_timeout_s=0.01)

    with pytest.raises(DuplexConnectionError, match=r"no session within 0\.01 s"):
        await client.open()
    assert peer.open_sessions == 0


async def test_a_peer_that_hangs_up_during_the_handshake(
    client: DuplexClientBase, peer: Peer
) -> None:
    peer.silent = True
    peer.hang_up()

    with pytest.raises(DuplexSessionClosedError):
        await client.open()


async def test_there_is_no_session_before_it_is_open(client: DuplexClientBase) -> None:
    with pytest.raises(DuplexSessionClosedError, match="not open"):
        await client.commit()
    with pytest.raises(DuplexSessionClosedError, match="not open"):
        _ = client.session_id
    await client.close()


async def test_a_server_that_never_says_goodbye_does_not_hold_the_client(
    client: DuplexClientBase, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    await client.open()
    peer.polite = False

    await client.close(timeout_s=0.01)

    assert "no session.closed within 0.01 s" in caplog.text
    with pytest.raises(DuplexSessionClosedError):
        await client.commit()


async def test_closing_twice_does_no_harm_and_leaves_no_task(
    client: DuplexClientBase, peer: Peer
) -> None:
    await client.open()
    await client.close()
    await client.close()

    assert peer.close_reasons == ["client_close"]
    assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("duplex-client")]


async def test_the_config_reaches_the_session(
    connect: Connect, peer: Peer, clock: VirtualClock
) -> None:
    config = SessionConfig(instructions="Be brief.", playback_commit_policy="ack_only")
    async with connect(config=config, clock=clock) as client:
        assert client.session_info.instructions == "Be brief."
        assert (client.model, client.config) == (MODEL, config)
    assert peer.config is not None
    assert peer.config.playback_commit_policy == "ack_only"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_are_used_in_the_same_way() -> None:
    assert public(InlineDuplexClient) == public(DuplexClientBase)
    assert public(DuplexClient) - public(DuplexClientBase) == {
        "commands_held",
        "commands_in_doubt",
        "events_missed",
        "export_credentials",
        "resume",
        "resume_token",
    }
    inline, remote = (
        inspect.signature(kind).parameters for kind in (InlineDuplexClient, DuplexClient)
    )
    shared = inline.keys() & remote.keys()
    assert shared == {"model", "config", "handshake_timeout_s", "trace", "clock"}
    assert {name: inline[name] for name in shared} == {name: remote[name] for name in shared}
