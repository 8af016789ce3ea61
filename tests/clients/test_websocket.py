"""What a client adds when there is a network: the URL, acknowledgements, signs of life, drops."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from tests.clients.scripted import (
    MODEL,
    SESSION_ID,
    Peer,
    VirtualClock,
    WebSocketPeer,
    acks,
    audio,
    created,
    done,
    session_of,
    words,
)
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from omniduplex.clients.duplex import (
    DuplexClient,
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
    build_realtime_url,
    wire_type,
)
from omniduplex.protocol.duplex import (
    Dialect,
    ErrorDetails,
    ErrorEvent,
    EventAck,
    Heartbeat,
    RealtimeEvent,
    ResponseDone,
    ResponseStatus,
    SessionClosed,
    SessionCreated,
    default_config,
    encode_event,
)

Served = tuple[WebSocketPeer, str]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ws://h:1", "ws://h:1/v1/realtime?duplex=1&model=m%2Fn&autostart=0"),
        ("ws://h:1/", "ws://h:1/v1/realtime?duplex=1&model=m%2Fn&autostart=0"),
        ("wss://h/v1/duplex", "wss://h/v1/duplex?duplex=1&model=m%2Fn&autostart=0"),
        ("ws://h/x?autostart=1&k=v", "ws://h/x?autostart=0&k=v&duplex=1&model=m%2Fn"),
    ],
)
def test_the_url_says_which_dialect_and_model(url: str, expected: str) -> None:
    assert build_realtime_url(url, "m/n") == expected


def test_the_url_takes_more_query() -> None:
    url = build_realtime_url("ws://h", "m", autostart=True, extra_query={"trace": "a b"})

    assert url == "ws://h/v1/realtime?duplex=1&model=m&trace=a+b&autostart=1"


@pytest.mark.anyio
async def test_a_client_asks_for_the_duplex_route(websocket_peer: Served) -> None:
    served, url = websocket_peer
    async with DuplexClient(url, model=MODEL):
        pass

    assert served.paths == ["/v1/realtime?duplex=1&model=test%2Fmodel&autostart=0"]


@pytest.mark.anyio
async def test_a_server_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens, and nobody else can
        client = DuplexClient(f"ws://127.0.0.1:{taken.getsockname()[1]}", model=MODEL)
        with pytest.raises(DuplexConnectionError, match="cannot connect to"):
            await client.open()


@pytest.mark.anyio
async def test_the_key_goes_as_a_bearer_token() -> None:
    seen: list[str | None] = []

    async def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append(connection.request.headers.get("Authorization"))

    async with serve(handler, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        client = DuplexClient(f"ws://127.0.0.1:{port}", model=MODEL, api_key="key")
        with pytest.raises(DuplexConnectionError):
            await client.open()

    assert seen == ["Bearer key"]


@pytest.mark.anyio
async def test_a_url_of_another_kind_is_told_without_the_query_that_we_add() -> None:
    client = DuplexClient("http://127.0.0.1:8000", model=MODEL)

    with pytest.raises(DuplexConnectionError, match="ws://") as caught:
        await client.open()

    assert "duplex=1" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "API key"), (403, "no Realtime API"), (404, "no Realtime API")]
)
@pytest.mark.anyio
async def test_a_refused_connection_says_what_to_do(status: int, hint: str) -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus(status), "")

    async def handler(connection: ServerConnection) -> None:
        await connection.close()

    async with serve(handler, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        client = DuplexClient(f"ws://127.0.0.1:{port}", model=MODEL)
        with pytest.raises(DuplexConnectionError, match=hint):
            await client.open()


@pytest.mark.anyio
async def test_a_server_that_refuses_and_hangs_up_before_it_is_asked_is_heard() -> None:
    details = ErrorDetails(
        type="invalid_request_error", code="unsupported", message="turn requests alone"
    )
    refusal = ErrorEvent(error=details)

    async def handler(connection: ServerConnection) -> None:
        await connection.send(encode_event(refusal, event_id="event_1", seq=None))
        await connection.close(1008, "unsupported")

    async def dial(url: str) -> ClientConnection:
        socket = await connect(url, compression=None)
        await socket.wait_closed()
        return socket

    async with serve(handler, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        client = DuplexClient(f"ws://127.0.0.1:{port}", model=MODEL, connect=dial)
        with pytest.raises(DuplexProtocolError, match="turn requests alone"):
            await client.open()


@pytest.mark.anyio
async def test_a_caller_may_make_the_connection_itself(websocket_peer: Served) -> None:
    _, url = websocket_peer
    asked: list[str] = []

    async def dial(final_url: str) -> ClientConnection:
        asked.append(final_url)
        return await connect(final_url, compression=None)

    async with DuplexClient(url, model=MODEL, connect=dial) as client:
        assert asked == [client.url]


@pytest.mark.anyio
async def test_events_are_acknowledged_in_one_batch_after_a_while(
    websocket_peer: Served, peer: Peer, clock: VirtualClock
) -> None:
    _, url = websocket_peer
    async with DuplexClient(url, model=MODEL, clock=clock, heartbeat_interval_s=None) as client:
        finished = client.wait_for(ResponseDone, timeout_s=60)
        peer.emit(created("r"), audio("r", b"ab"), done("r"))
        await finished
        await clock.sleeping()
        assert acks(peer) == []
        clock.advance(0.2)

        assert (await peer.received(EventAck)).server_event_seq == 4
    assert acks(peer) == [4]


@pytest.mark.anyio
async def test_a_burst_is_acknowledged_every_64_events(
    websocket_peer: Served, peer: Peer, clock: VirtualClock
) -> None:
    _, url = websocket_peer
    async with DuplexClient(url, model=MODEL, clock=clock) as client:
        finished = client.wait_for(ResponseDone, timeout_s=60)
        peer.emit(*(words("r", "a") for _ in range(150)), done("r"))
        await finished

    # 1 session.created, 150 deltas, 1 response.done; the last batch goes before the goodbye.
    assert acks(peer) == [64, 128, 152]


@pytest.mark.anyio
async def test_a_client_shows_that_it_lives(
    websocket_peer: Served, peer: Peer, clock: VirtualClock
) -> None:
    _, url = websocket_peer
    async with DuplexClient(url, model=MODEL, clock=clock, heartbeat_interval_s=7):
        # The acknowledgement of `session.created` sleeps as well.
        for sleepers in (2, 1):
            await clock.sleeping(sleepers)
            clock.advance(7)
            await peer.received(Heartbeat)

    assert len(peer.sent(Heartbeat)) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("status", ["completed", "cancelled", "failed", "incomplete"])
async def test_b58_the_four_ways_to_end_are_told_apart(
    websocket_peer: Served, peer: Peer, status: ResponseStatus
) -> None:
    _, url = websocket_peer
    async with DuplexClient(url, model=MODEL) as client:
        responses = client.responses()
        peer.emit(created("r"), done("r", status))
        response = await anext(responses)

        assert await response.wait(timeout_s=60) == status
        assert response.done_event is not None
        assert response.done_event.response.status == status


@pytest.mark.anyio
async def test_b59_a_server_that_leaves_without_a_close_frame_after_its_goodbye(
    websocket_peer: Served, peer: Peer
) -> None:
    _, url = websocket_peer
    async with DuplexClient(url, model=MODEL) as client:
        events = client.events()
        peer.close("server_done")

        assert [type(event) for event in [event async for event in events]] == [SessionClosed]
    with pytest.raises(DuplexSessionClosedError, match="server_done"):
        await client.commit()


@pytest.mark.anyio
async def test_deltas_without_a_created_response_are_an_answer_all_the_same(
    websocket_peer: Served, peer: Peer
) -> None:
    _, url = websocket_peer
    async with DuplexClient(url, model=MODEL) as client:
        responses = client.responses()
        peer.emit(audio("r", b"abcd"), words("r", "hi"), done("r"))
        response = await anext(responses)

        assert [chunk async for chunk in response.audio()] == [b"abcd"]
        assert await response.wait(timeout_s=60) == "completed"
    assert (response.created_event, response.transcript) == (None, "hi")


@asynccontextmanager
async def saying(*frames: str) -> AsyncIterator[str]:
    """The URL of a server that says these frames to whoever opens a session."""

    async def handler(socket: ServerConnection) -> None:
        await socket.recv()
        for frame in frames:
            await socket.send(frame)
        await socket.wait_closed()

    async with serve(handler, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}"


def numbered(event: RealtimeEvent, seq: int | None) -> str:
    return encode_event(event, event_id="event", seq=seq)


def opened() -> str:
    config = default_config(MODEL, Dialect.DUPLEX)
    return numbered(SessionCreated(session=session_of(config)), None)


def goodbye(seq: int) -> str:
    return numbered(SessionClosed(session_id=SESSION_ID, epoch=0, reason="end"), seq)


@pytest.mark.anyio
async def test_an_event_seen_before_is_dropped() -> None:
    one, two = numbered(words("r", "one"), 1), numbered(words("r", " two"), 2)
    frames = (opened(), one, one, two, one, numbered(done("r"), 3), goodbye(4))
    async with saying(*frames) as url, DuplexClient(url, model=MODEL) as client:
        response = await anext(client.responses())

        assert await response.wait(timeout_s=60) == "completed"
    assert response.transcript == "one two"


@pytest.mark.anyio
async def test_an_event_nobody_knows_passes_through() -> None:
    frames = (
        opened(),
        '{"type": "moon.rise", "server_event_seq": 1, "phase": "full"}',
        '{"type": "response.text.delta", "response_id": "r", "delta": "beta"}',
        numbered(done("r"), 2),
        goodbye(3),
    )
    async with saying(*frames) as url:
        client = DuplexClient(url, model=MODEL)
        events = client.events()
        async with client:
            kinds = [wire_type(event) async for event in events]
            response = await anext(client.responses())
    assert kinds == [
        "session.created",
        "moon.rise",
        "response.text.delta",
        "response.done",
        "session.closed",
    ]
    assert response.text == "beta"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ('{"type": "error", "error": "no such route", "code": "unsupported"}', "unsupported"),
        ('{"type": "session.created", "session": {}}', "bad_event"),
    ],
)
async def test_a_handshake_that_goes_wrong(frame: str, code: str) -> None:
    async with saying(frame) as url:
        with pytest.raises(DuplexProtocolError) as caught:
            await DuplexClient(url, model=MODEL).open()
    assert caught.value.code == code


@pytest.mark.anyio
async def test_a_frame_that_is_no_event_ends_the_session() -> None:
    async with saying("not json") as url:
        with pytest.raises(DuplexSessionClosedError, match="invalid_json"):
            await DuplexClient(url, model=MODEL).open()
