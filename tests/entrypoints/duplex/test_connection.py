from __future__ import annotations

import json
import socket
import struct

import pytest
from tests.entrypoints.fake_omni import FakeOmni
from tests.entrypoints.talk import TIMEOUT_S, Talk, offer
from websockets.exceptions import ConnectionClosed

from omniduplex.entrypoints.duplex.attachment import close_code
from omniduplex.protocol.duplex import DuplexCommand, SessionClosed, SessionExpired
from omniduplex.protocol.duplex.limits import MAX_EVENT_BYTES

pytestmark = pytest.mark.e2e

BAD_FRAMES: dict[str, tuple[str | bytes, str, str | None]] = {
    "not JSON": ("{nope", "invalid_json", None),
    "no object": ("7", "bad_event", None),
    "no type": ('{"event_id": "e1"}', "bad_event", "e1"),
    "unknown type": ('{"type": "response.sing", "event_id": "e1"}', "unknown_event", "e1"),
    "a wrong field": (
        '{"type": "input_audio_buffer.append", "event_id": "e1", "audio": 7}',
        "bad_event",
        "e1",
    ),
    "no base64": (
        '{"type": "input_audio_buffer.append", "event_id": "e1", "audio": "*"}',
        "bad_audio",
        "e1",
    ),
    "binary": (b"\x00" * 320, "bad_event", None),
    "an ack of what was not sent": (
        '{"type": "session.event_ack", "event_id": "e1", "server_event_seq": 99}',
        "invalid_event_ack",
        "e1",
    ),
    "a negative ack": (
        '{"type": "session.event_ack", "event_id": "e1", "server_event_seq": -1}',
        "invalid_event_ack",
        "e1",
    ),
    "a late resume": (
        '{"type":"session.resume","event_id":"e1","session_id":"s","resume_token":"t"}',
        "unsupported_session_resume",
        "e1",
    ),
    "nothing to cancel": (
        '{"type": "response.cancel", "event_id": "e1"}',
        "response_not_active",
        "e1",
    ),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_bad_frame_is_told_and_the_next_good_one_works(base: str, name: str) -> None:
    frame, code, event_id = BAD_FRAMES[name]
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        talk.socket.send(frame)
        error = talk.recv()
        talk.send("session.heartbeat")
        ack = talk.recv()

    assert (error["type"], error["error"]["code"]) == ("error", code)
    assert error["error"].get("event_id") == event_id
    assert (ack["type"], ack["server_event_seq"]) == ("session.heartbeat_ack", 4)


def test_a_frame_beyond_the_limit_is_refused_and_the_connection_stays(base: str) -> None:
    with Talk(base, "/v1/realtime") as talk:
        talk.until("session.created")
        talk.socket.send("x" * (MAX_EVENT_BYTES + 1))
        error = talk.recv()
        talk.send("session.update", session={"type": "realtime"})
        after = talk.recv()

    assert error["error"]["code"] == "event_too_large"
    assert after["type"] == "session.updated"


def test_the_openai_dialect_names_errors_as_openai_does(base: str) -> None:
    with Talk(base, "/v1/realtime") as talk:
        talk.until("session.created")
        talk.send("response.cancel", event_id="e1")
        error = talk.recv()["error"]

    assert (error["code"], error["event_id"]) == ("response_cancel_not_active", "e1")


def test_a_fragmented_frame_is_one_event(base: str) -> None:
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        talk.socket.send(iter(['{"type": "sess', "ion.heart", 'beat"}']))
        assert talk.recv()["type"] == "session.heartbeat_ack"


def test_every_event_has_its_id_and_its_place(base: str, omni: FakeOmni) -> None:
    omni.script = ("resp_1",) * 20
    with Talk(base, "/v1/duplex?model=m") as talk:
        for _ in range(10):
            talk.send("response.create")
            talk.socket.send("{nope")
        events = [talk.recv() for _ in range(2 + 10 * 21)]

    assert [event["server_event_seq"] for event in events] == list(range(1, len(events) + 1))
    ids = {event["event_id"] for event in events}
    assert len(ids) == len(events)
    assert all(len(name) == len("event_") + 32 for name in ids)


def test_audio_and_other_commands_stay_in_order(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        for number in range(40):
            if number % 4 == 3:
                talk.send("session.heartbeat", event_id=str(number))
            else:
                talk.send("input_audio_buffer.append", event_id=str(number), audio="AAAA")
        acks = [talk.recv() for _ in range(10)]
        commands = omni.opened.get(timeout=TIMEOUT_S).commands

        assert [ack["type"] for ack in acks] == ["session.heartbeat_ack"] * 10
        assert [command.event_id for command in commands] == [str(number) for number in range(40)]


def test_audio_that_the_session_refuses_is_told(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        session = omni.opened.get(timeout=TIMEOUT_S)
        session.close_reason = "gone"
        talk.send("input_audio_buffer.append", event_id="e1", audio="AAAA")
        error = talk.recv()["error"]
        session.close_reason = None  # or the server would wait for its end

    assert (error["code"], error["event_id"]) == ("session_closed", "e1")


def test_an_ack_of_what_was_sent_is_silent_and_not_the_engines_business(
    base: str, omni: FakeOmni
) -> None:
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        for seq in (0, 1, 2):
            talk.send("session.event_ack", server_event_seq=seq)
        talk.send("session.heartbeat")
        assert talk.recv()["type"] == "session.heartbeat_ack"
        assert len(omni.opened.get(timeout=TIMEOUT_S).commands) == 1


def test_audio_of_a_cancelled_response_is_not_sent_and_takes_no_number(
    base: str, omni: FakeOmni
) -> None:
    omni.script = ("resp_1", "resp_2", "resp_1", "resp_2")
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        omni.opened.get(timeout=TIMEOUT_S).cancelled.add("resp_1")
        talk.send("response.create")
        deltas = [talk.recv(), talk.recv()]

    assert [delta["response_id"] for delta in deltas] == ["resp_2", "resp_2"]
    assert [delta["server_event_seq"] for delta in deltas] == [3, 4]


@pytest.mark.parametrize("beta", [False, True])
def test_an_update_is_told_to_those_alone_who_asked_for_it(base: str, *, beta: bool) -> None:
    headers = {"OpenAI-Beta": "realtime=v1"} if beta else {}
    with Talk(base, "/v1/realtime", additional_headers=headers) as talk:
        talk.until("session.created")
        talk.send("session.update", session={"instructions": "be brief"})
        updated = talk.until("session.updated")

    assert updated[-1]["session"]["instructions"] == "be brief"


def test_extensions_switch_the_rendering(base: str) -> None:
    with Talk(base, "/v1/realtime") as talk:
        talk.until("session.created")
        talk.send("session.heartbeat")
        talk.send("session.update", session={})
        plain = talk.recv()
        talk.send("session.update", session={"extensions": ["duplex"]})
        updated = talk.recv()
        talk.send("session.heartbeat")
        ack = talk.recv()

    assert "capabilities" not in plain["session"]
    assert plain["server_event_seq"] == 2
    assert "capabilities" in updated["session"]
    assert ack["type"] == "session.heartbeat_ack"
    assert ack["server_event_seq"] == updated["server_event_seq"] + 1


@pytest.mark.parametrize(
    ("offered", "answered"),
    [
        ((), None),
        (("realtime",), "realtime"),
        (("realtime", "openai-insecure-api-key.k", "openai-agents-sdk.0.20"), "realtime"),
        (("chat",), None),
    ],
)
def test_the_realtime_subprotocol_is_answered(
    base: str, offered: tuple[str, ...], answered: str | None
) -> None:
    with Talk(base, "/v1/realtime", subprotocols=offer(*offered) or None) as talk:
        assert talk.socket.subprotocol == answered
        assert talk.recv()["type"] == "session.created"


def test_session_close_is_told_before_the_close_frame(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.send("session.close", reason="done talking")
        events, code, reason = talk.ends()

    assert events[-1]["type"] == "session.closed"
    assert (code, reason) == (1000, "done talking")
    assert omni.sessions == []


def test_a_long_reason_is_cut_to_fit_the_close_frame(base: str) -> None:
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.send("session.close", reason="ü" * 100)
        _, code, reason = talk.ends()

    assert (code, reason) == (1000, "ü" * 61)


def test_openai_clients_see_only_the_close_frame(base: str) -> None:
    with Talk(base, "/v1/realtime") as talk:
        talk.send("session.close")
        events, code, reason = talk.ends()

    assert [event["type"] for event in events] == ["session.created"]
    assert (code, reason) == (1000, "client_close")


def test_an_engine_that_just_stops_is_an_internal_error(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/duplex?model=m") as talk:
        session = omni.opened.get(timeout=TIMEOUT_S)
        omni.loop.call_soon_threadsafe(session.pending.put_nowait, None)
        events, code, _ = talk.ends()

    assert events[-1]["error"]["code"] == "internal_error"
    assert code == 1011
    assert session.close_reason == "transport_error"


def test_a_crash_inside_a_connection_is_told_and_ends_the_session(
    base: str, omni: FakeOmni, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(command: DuplexCommand) -> None:
        raise RuntimeError("a bug")

    with Talk(base, "/v1/duplex?model=m") as talk:
        session = omni.opened.get(timeout=TIMEOUT_S)
        monkeypatch.setattr(session, "submit", crash)
        talk.send("session.heartbeat")
        events, code, reason = talk.ends()

    assert events[-1]["error"]["code"] == "internal_error"
    assert (code, reason) == (1011, "internal_error")
    assert session.close_reason == "transport_error"


@pytest.mark.parametrize("code", [1000, 1001, 3000, 4999])
def test_a_client_that_closes_releases_its_session(base: str, omni: FakeOmni, code: int) -> None:
    with Talk(base, "/v1/realtime") as talk:
        talk.recv()
        session = omni.opened.get(timeout=TIMEOUT_S)
        talk.socket.close(code, "bye")

    assert session.released.wait(TIMEOUT_S)
    assert session.close_reason == "disconnect"


@pytest.mark.parametrize(
    "sent", ["nothing", "half a header", "half a frame", "a close and no more"]
)
def test_a_client_that_vanishes_releases_its_session_and_disturbs_nobody(
    base: str, omni: FakeOmni, sent: str
) -> None:
    partial = {
        "nothing": b"",
        "half a header": b"\x81",
        "half a frame": b"\x81\xfe\x10\x00mask" + b"half a frame",
        "a close and no more": b"\x88\x80mask",
    }[sent]
    with Talk(base, "/v1/duplex?model=m") as control:
        control.until("session.updated")
        omni.opened.get(timeout=TIMEOUT_S)
        try:
            with Talk(base, "/v1/duplex?model=m") as talk:
                talk.until("session.updated")
                session = omni.opened.get(timeout=TIMEOUT_S)
                talk.socket.socket.send(partial)
                _reset(talk.socket.socket)
                assert session.released.wait(TIMEOUT_S)
        except (ConnectionClosed, OSError):
            assert session.released.is_set()
        control.send("session.heartbeat")
        assert control.recv()["type"] == "session.heartbeat_ack"
        assert len(omni.sessions) == 1


def test_no_byte_at_which_a_client_resets_hurts_the_server(base: str, omni: FakeOmni) -> None:
    omni.max_sessions = 1000
    frame = json.dumps({"type": "session.heartbeat"}).encode()
    # RFC 6455, 1.3: the key of its example; 5.3: a mask of zeros leaves the payload as it is.
    upgrade = (
        b"GET /v1/duplex?model=m HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    sent = upgrade + bytes((0x81, 0x80 | len(frame))) + bytes(4) + frame
    host, _, port = base.removeprefix("http://").partition(":")
    with Talk(base, "/v1/duplex?model=m") as control:
        control.until("session.updated")
        session = omni.opened.get(timeout=TIMEOUT_S)
        for cut in range(0, len(sent) + 1, 2):
            with socket.create_connection((host, int(port))) as raw:
                raw.sendall(sent[:cut])
                if cut >= len(upgrade):
                    assert raw.recv(12) == b"HTTP/1.1 101"
                _reset(raw)
        control.send("session.heartbeat")
        assert control.recv()["type"] == "session.heartbeat_ack"
        while not omni.opened.empty():
            assert omni.opened.get().released.wait(TIMEOUT_S)
        assert omni.sessions == [session]


def test_a_slot_is_free_again_after_every_close(base: str, omni: FakeOmni) -> None:
    omni.max_sessions = 1
    for _ in range(50):
        with Talk(base, "/v1/duplex?model=m") as talk:
            talk.until("session.updated")
            talk.send("session.close")
            assert talk.ends()[1] == 1000


def test_a_client_that_does_not_read_does_not_hold_up_another(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/duplex?model=m", max_queue=1) as slow:
        slow.until("session.updated")
        stuck = omni.opened.get(timeout=TIMEOUT_S)
        omni.script, omni.delta_bytes = ("resp_1",) * 200, 256 * 1024
        slow.send("response.create")

        with Talk(base, "/v1/duplex?model=m") as other:
            for _ in range(20):
                other.send("session.heartbeat")
                other.until("session.heartbeat_ack")

        assert stuck.pending.qsize() > 100
        received = [slow.recv() for _ in range(200)]

    assert [event["server_event_seq"] for event in received] == list(range(3, 203))


def test_the_close_code_says_when_the_server_goes_away_or_has_failed() -> None:
    closed = SessionClosed(session_id="s", epoch=0, reason="shutdown")
    expired = SessionExpired(session_id="s", reason="idle_timeout")

    failed = SessionClosed(session_id="s", epoch=0, reason="internal_error")

    assert close_code(closed) == 1001
    assert close_code(expired) == 1000
    assert close_code(failed) == 1011


def _reset(raw: socket.socket) -> None:
    """Drop a TCP connection by RST instead of FIN."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.shutdown(socket.SHUT_RD)
    raw.close()
