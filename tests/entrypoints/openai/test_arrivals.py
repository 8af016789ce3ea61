"""Connections that say nothing cost little, and not for long (S3)."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from tests.entrypoints.fake_omni import FakeOmni
from tests.entrypoints.running import RunningServer, running
from tests.entrypoints.talk import TIMEOUT_S, Talk
from tests.reliability.processes import comes_true

from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.arrivals import MAX_HEAD_BYTES, Lobby

SOON_S, FOR_EVER_S = 0.05, 1000.0
NO_HEADERS: Mapping[str, str] = {}
REQUEST = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def connected(server: RunningServer, sent: bytes) -> Iterator[socket.socket]:
    """A connection on which this much was sent."""
    address = urlsplit(server.base)
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        with suppress(ConnectionError):  # it may be cut off already
            connection.sendall(sent)
        yield connection


def http(server: RunningServer) -> HTTPConnection:
    """A connection that stays for one request after another."""
    address = urlsplit(server.base)
    return HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_S)


def is_healthy(connection: HTTPConnection, headers: Mapping[str, str] = NO_HEADERS) -> bool:
    """Ask the server; the whole answer is read."""
    connection.request("GET", "/health", headers=dict(headers))
    response = connection.getresponse()
    response.read()
    return response.status == 200


def is_cut(connection: socket.socket) -> bool:
    """Whether the server ends the connection."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.e2e
@pytest.mark.parametrize("sent", [b"", REQUEST[:20], REQUEST[:-2]])
def test_whoever_does_not_come_to_the_point_is_cut_off(omni: FakeOmni, sent: bytes) -> None:
    with running(create_app(omni), lobby=Lobby(timeout_s=SOON_S)) as server:
        with connected(server, sent) as silent:
            assert is_cut(silent)
        assert comes_true(lambda: server.connections == 0)


@pytest.mark.e2e
def test_a_request_that_follows_another_arrives_anew(omni: FakeOmni) -> None:
    lobby = Lobby(max_arrivals=1, timeout_s=FOR_EVER_S)
    with running(create_app(omni), lobby=lobby) as server, closing(http(server)) as slow:
        assert is_healthy(slow)
        assert lobby.waiting == 0
        slow.sock.sendall(REQUEST[:20])
        assert comes_true(lambda: lobby.waiting == 1)
        with connected(server, b""):
            assert is_cut(slow.sock)


@pytest.mark.e2e
def test_a_conversation_is_no_arrival(omni: FakeOmni) -> None:
    lobby = Lobby(max_arrivals=1, timeout_s=FOR_EVER_S)
    with (
        running(create_app(omni), lobby=lobby) as server,
        Talk(server.base, "/v1/duplex?model=m") as talk,
    ):
        talk.until("session.updated")
        with connected(server, b"") as silent, connected(server, b""):
            assert is_cut(silent)
        talk.send("session.heartbeat")
        assert talk.recv()["type"] == "session.heartbeat_ack"


@pytest.mark.e2e
def test_of_too_many_who_say_nothing_the_first_has_to_go(omni: FakeOmni) -> None:
    lobby = Lobby(max_arrivals=3, timeout_s=FOR_EVER_S)
    with running(create_app(omni), lobby=lobby) as server, ExitStack() as stack:
        silent = [stack.enter_context(connected(server, b"")) for _ in range(5)]
        assert is_cut(silent[0])
        with urlopen(f"{server.base}/health", timeout=TIMEOUT_S) as response:
            assert response.status == 200
        assert is_cut(silent[1])


@pytest.mark.e2e
def test_headers_without_an_end_are_cut_off(omni: FakeOmni) -> None:
    with running(create_app(omni), lobby=Lobby(timeout_s=FOR_EVER_S)) as server:
        head = b"GET /health HTTP/1.1\r\nHost: x\r\n"
        with connected(server, head + b"X: " + b"a" * (2 * MAX_HEAD_BYTES)) as endless:
            while not is_cut(endless):
                pass  # it may be told why before
        assert comes_true(lambda: server.connections == 0)
        with urlopen(f"{server.base}/health", timeout=TIMEOUT_S) as response:
            assert response.status == 200


@pytest.mark.e2e
def test_each_request_has_the_whole_room_for_its_headers(omni: FakeOmni) -> None:
    lobby = Lobby(timeout_s=FOR_EVER_S)
    with running(create_app(omni), lobby=lobby) as server, closing(http(server)) as connection:
        for _ in range(3):
            assert is_healthy(connection, {"X": "a" * (MAX_HEAD_BYTES // 2)})
            assert lobby.waiting == 0
