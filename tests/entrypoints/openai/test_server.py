from __future__ import annotations

import socket
import threading

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.fake_omni import MODEL, FakeOmni
from tests.entrypoints.talk import TIMEOUT_S, Talk
from websockets.exceptions import InvalidStatus

from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.server import TalkServer, bind, server_config

pytestmark = pytest.mark.e2e


def test_a_stopping_server_says_goodbye_to_every_session(omni: FakeOmni) -> None:
    app = create_app(omni)
    ready = threading.Event()
    server = TalkServer(server_config(app), app, ready.set, drain_timeout_s=0.0)
    with bind("127.0.0.1", 0) as listener:
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        assert ready.wait(TIMEOUT_S)
        with Talk(base, "/v1/duplex?model=m") as duplex, Talk(base, "/v1/realtime") as openai:
            duplex.until("session.updated")
            openai.until("session.updated")
            server.should_exit = True
            events, code, reason = duplex.ends()
            assert openai.ends() == ([], 1001, "shutdown")
        thread.join(TIMEOUT_S)

    assert [event["type"] for event in events] == ["session.closed"]
    assert (code, reason) == (1001, "shutdown")
    assert events[0]["reason"] == "shutdown"
    assert not thread.is_alive()


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


def test_an_upgrade_that_cannot_be_parsed_is_answered(base: str) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        Talk(base, "/v1/realtime?model=" + "m" * 9000),
    ):
        pass
    assert refused.value.response.status_code == 400


def test_a_taken_port_shows_at_once() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(OSError, match="Address already in use"):
            bind("127.0.0.1", taken.getsockname()[1])


def test_a_host_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match="Cannot assign"):
        bind("192.0.2.1", 0)
