from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.fake_omni import MODEL, FakeOmni
from tests.entrypoints.running import running
from tests.entrypoints.talk import TIMEOUT_S, Talk
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import CloseCode

from omniduplex.entrypoints.duplex.serving import (
    SEE_OFF_TIMEOUT_S,
    DuplexServing,
)
from omniduplex.entrypoints.duplex.websocket import GOODBYE_TIMEOUT_S
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.server import MAX_FRAME_BYTES, TalkProtocol, bind
from omniduplex.entrypoints.patience import SEND_TIMEOUT_S

pytestmark = pytest.mark.e2e


def test_a_stopping_server_says_goodbye_to_every_session(omni: FakeOmni) -> None:
    with (
        running(create_app(omni)) as server,
        Talk(server.base, "/v1/duplex?model=m") as duplex,
        Talk(server.base, "/v1/realtime") as openai,
    ):
        duplex.until("session.updated")
        openai.until("session.created")
        server.signal()
        events, code, reason = duplex.ends()
        assert openai.ends() == ([], 1001, "shutdown")
        assert server.ended()

    assert [event["type"] for event in events] == ["session.closed"]
    assert (code, reason) == (1001, "shutdown")
    assert events[0]["reason"] == "shutdown"


def test_a_draining_server_tells_how_long_and_waits_for_its_sessions(omni: FakeOmni) -> None:
    with (
        running(create_app(omni), drain_timeout_s=600.0) as server,
        Talk(server.base, "/v1/duplex?model=m") as duplex,
        Talk(server.base, "/v1/realtime") as openai,
    ):
        duplex.until("session.updated")
        openai.until("session.created")
        server.signal()
        notice = duplex.recv()
        duplex.send("session.heartbeat")
        ack = duplex.recv()
        for talk in (duplex, openai):
            talk.send("session.close")
            assert talk.ends()[1:] == (1000, "client_close")
        assert server.ended()

    assert (notice["type"], notice["reason"]) == ("session.expiring", "shutdown")
    assert notice["time_left_ms"] == 600_000
    assert ack["type"] == "session.heartbeat_ack"


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/duplex?model=m", "/v1/duplex"])
def test_a_draining_server_opens_no_session(omni: FakeOmni, path: str) -> None:
    with (
        running(create_app(omni), drain_timeout_s=600.0) as server,
        Talk(server.base, "/v1/duplex?model=m") as talk,
    ):
        talk.until("session.updated")
        server.signal()
        talk.until("session.expiring")
        with Talk(server.base, path) as late:
            if path == "/v1/duplex":  # the others open before they read
                late.send("session.update", session={})
            (event,), code, reason = late.ends()
        with pytest.raises(HTTPError) as unhealthy:
            urlopen(f"{server.base}/health", timeout=TIMEOUT_S)
        with unhealthy.value as answer:
            assert (answer.status, json.load(answer)) == (503, {"status": "draining"})
        talk.send("session.close")
        talk.ends()

    assert event["error"]["code"] == "server_draining"
    assert event["error"]["type"] == "server_error"
    assert (code, reason) == (1008, "server_draining")


def test_a_session_can_be_resumed_while_the_server_drains(omni: FakeOmni) -> None:
    omni.resumable = True
    with (
        running(create_app(omni), drain_timeout_s=600.0) as server,
        Talk(server.base, "/v1/duplex?model=m") as other,
    ):
        other.until("session.updated")
        with Talk(server.base, "/v1/duplex?model=m") as talk:
            created, _ = talk.until("session.updated")
        server.signal()
        other.until("session.expiring")
        with Talk(server.base, "/v1/duplex") as talk:
            talk.send(
                "session.resume",
                session_id=created["session"]["id"],
                resume_token=created["resume_token"],
                last_received_server_event_seq=2,
            )
            assert talk.until("session.expiring")[0]["type"] == "session.resumed"
            talk.send("session.close")
            assert talk.ends()[1] == 1000
        other.send("session.close")
        other.ends()
        assert server.ended()


def test_a_second_signal_waits_for_nobody(omni: FakeOmni) -> None:
    with (
        running(create_app(omni), drain_timeout_s=600.0) as server,
        Talk(server.base, "/v1/duplex?model=m") as talk,
    ):
        talk.until("session.updated")
        server.signal()
        talk.until("session.expiring")
        server.signal()
        events, code, reason = talk.ends()
        assert server.ended()

    assert [event["type"] for event in events] == ["session.closed"]
    assert (code, reason) == (1001, "shutdown")


def test_a_detached_session_does_not_outlive_the_drain(omni: FakeOmni) -> None:
    omni.resumable = True
    with running(create_app(omni), drain_timeout_s=0.01) as server:
        with Talk(server.base, "/v1/duplex?model=m") as talk:
            talk.until("session.updated")
            session = omni.opened.get(timeout=TIMEOUT_S)
        assert session.lease.is_detached.wait(TIMEOUT_S)
        server.signal()
        assert server.ended()

    assert session.close_reason == "shutdown"


def test_a_client_that_never_reads_loses_its_session(omni: FakeOmni, serve_app: ServeApp) -> None:
    serving = DuplexServing(omni, MODEL, send_timeout_s=0.1)
    base = serve_app(create_app(omni, serving=serving))
    omni.script, omni.delta_bytes = ("resp_1",) * 100, 256 * 1024

    with Talk(base, "/v1/duplex?model=m", max_queue=1) as talk:
        talk.until("session.updated")
        talk.send("response.create")
        session = omni.opened.get(timeout=TIMEOUT_S)
        assert session.released.wait(TIMEOUT_S)
        assert session.close_reason == "disconnect"
        talk.socket.socket.shutdown(socket.SHUT_RDWR)


def test_a_connection_does_not_outlive_its_handler_for_want_of_a_reader(
    omni: FakeOmni, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TalkProtocol, "linger_s", 0.05)
    app = create_app(omni, serving=DuplexServing(omni, MODEL, send_timeout_s=0.1))
    omni.script, omni.delta_bytes = ("resp_1",) * 100, 256 * 1024

    with running(app) as server, Talk(server.base, "/v1/realtime", max_queue=1) as talk:
        talk.until("session.created")
        assert server.connections == 1
        talk.send("response.create")
        while server.connections:  # the test's timeout is the limit
            threading.Event().wait(0.01)
        talk.socket.socket.shutdown(socket.SHUT_RDWR)


def test_an_upgrade_that_cannot_be_parsed_is_answered(base: str) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        Talk(base, "/v1/realtime?model=" + "m" * 9000),
    ):
        pass
    assert refused.value.response.status_code == 400


@pytest.mark.parametrize("opens", [True, False], ids=["in a session", "as the first event"])
@pytest.mark.parametrize("frames", [[b"\xff"], [b'{"type": "', b"\xc3", b'"}']], ids=["one", "cut"])
def test_text_that_is_not_utf8_ends_its_connection_with_a_line_in_the_log(
    base: str, caplog: pytest.LogCaptureFixture, frames: list[bytes], opens: bool
) -> None:
    caplog.set_level(logging.INFO)
    with Talk(base, "/v1/duplex?model=m") as other:
        other.until("session.updated")
        with Talk(base, "/v1/duplex?model=m" if opens else "/v1/duplex") as talk:
            if opens:
                talk.until("session.updated")
            talk.socket.send(frames if frames[1:] else frames[0], text=True)
            assert talk.ends() == ([], 1007, "")
        other.send("session.heartbeat")
        assert other.recv()["type"] == "session.heartbeat_ack"

    told = [record for record in caplog.records if "UTF-8" in record.getMessage()]
    assert [(one.levelname, one.exc_info) for one in told] == [("INFO", None)]
    assert not [record for record in caplog.records if record.exc_info]


def test_a_frame_that_no_event_can_be_ends_its_connection_alone(base: str) -> None:
    with Talk(base, "/v1/duplex?model=m") as other, Talk(base, "/v1/duplex?model=m") as talk:
        other.until("session.updated")
        talk.until("session.updated")
        with suppress(ConnectionClosed):  # the server does not wait for the end of it
            talk.socket.send("x" * (MAX_FRAME_BYTES + 1))
        with pytest.raises(ConnectionClosed) as closed:
            talk.recv()
        # A reset, for what was not read any more, may overtake the close frame.
        told = closed.value.rcvd
        assert told is None or told.code == CloseCode.MESSAGE_TOO_BIG
        other.send("session.heartbeat")
        assert other.recv()["type"] == "session.heartbeat_ack"


def test_a_character_may_be_cut_in_two_by_frames(base: str) -> None:
    event = '{"type": "session.event_ack", "server_event_seq": 99, "event_id": "é"}'.encode()
    cut = event.index("é".encode()) + 1
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        talk.socket.send([event[:cut], event[cut:]], text=True)
        error = talk.recv()["error"]

    assert (error["code"], error["event_id"]) == ("invalid_event_ack", "é")


def test_a_server_that_stops_waits_longer_than_it_says_goodbye() -> None:
    assert GOODBYE_TIMEOUT_S < SEE_OFF_TIMEOUT_S < SEND_TIMEOUT_S


def test_a_taken_port_shows_at_once() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(OSError, match="Address already in use"):
            bind("127.0.0.1", taken.getsockname()[1])


def test_a_host_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match="Cannot assign"):
        bind("192.0.2.1", 0)


def test_a_server_may_have_more_files_open_than_a_shell_lets_it() -> None:
    code = (
        "import resource as r; from omniduplex.entrypoints.openai.server import allow_many_sockets;"
        "_, hard = r.getrlimit(r.RLIMIT_NOFILE); r.setrlimit(r.RLIMIT_NOFILE, (256, hard));"
        "allow_many_sockets(); print(r.getrlimit(r.RLIMIT_NOFILE)[0] > 256)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "True\n"
