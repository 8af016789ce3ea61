from __future__ import annotations

from typing import Any

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.fake_omni import MODEL, FakeOmni
from tests.entrypoints.talk import Talk

from omniduplex.entrypoints.duplex.handshake import Handshake, read_upgrade
from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.protocol.duplex import Dialect, DuplexError


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/v1/realtime", {}, Handshake(Dialect.OPENAI, MODEL, True)),
        ("/v1/realtime", {"model": "gpt-x"}, Handshake(Dialect.OPENAI, "gpt-x", True)),
        ("/v1/realtime", {"model": ""}, Handshake(Dialect.OPENAI, MODEL, True)),
        ("/v1/realtime", {"autostart": "0"}, Handshake(Dialect.DUPLEX, MODEL, False)),
        ("/v1/realtime", {"autostart": "off", "model": "m"}, Handshake(Dialect.DUPLEX, "m", False)),
        ("/v1/realtime", {"resume": "1"}, Handshake(Dialect.DUPLEX, MODEL, False)),
        ("/v1/realtime", {"autostart": "1"}, Handshake(Dialect.OPENAI, MODEL, True)),
        ("/v1/realtime", {"resume": "0"}, Handshake(Dialect.OPENAI, MODEL, True)),
        ("/v1/realtime", {"duplex": "1"}, Handshake(Dialect.DUPLEX, MODEL, False)),
        ("/v1/realtime", {"duplex": "TRUE"}, Handshake(Dialect.DUPLEX, MODEL, False)),
        ("/v1/realtime", {"duplex": "on", "model": "m"}, Handshake(Dialect.DUPLEX, "m", True)),
        ("/v1/duplex", {}, Handshake(Dialect.DUPLEX, MODEL, False)),
        ("/v1/duplex", {"duplex": "0"}, Handshake(Dialect.DUPLEX, MODEL, False)),
        ("/v1/duplex", {"model": "m"}, Handshake(Dialect.DUPLEX, "m", True)),
        ("/v1/duplex", {"model": "m", "autostart": "0"}, Handshake(Dialect.DUPLEX, "m", False)),
        ("/v1/duplex", {"model": "m", "autostart": "No"}, Handshake(Dialect.DUPLEX, "m", False)),
        ("/v1/duplex", {"model": "m", "autostart": "1"}, Handshake(Dialect.DUPLEX, "m", True)),
        ("/v1/duplex", {"model": "m", "resume": "yes"}, Handshake(Dialect.DUPLEX, "m", False)),
        ("/v1/duplex", {"model": "m", "resume": "0"}, Handshake(Dialect.DUPLEX, "m", True)),
    ],
)
def test_the_url_chooses_dialect_and_opening(
    path: str, query: dict[str, str], expected: Handshake
) -> None:
    assert read_upgrade(path, query, {}, MODEL) == expected


@pytest.mark.parametrize(
    ("header", "dialect"),
    [
        ("realtime=v1", Dialect.BETA),
        ("assistants=v2, realtime=v1", Dialect.BETA),
        ("realtime=v2", Dialect.OPENAI),
        ("", Dialect.OPENAI),
    ],
)
def test_the_beta_header_asks_for_the_beta_dialect(header: str, dialect: Dialect) -> None:
    headers = {"openai-beta": header}

    assert read_upgrade("/v1/realtime", {}, headers, MODEL) == Handshake(dialect, MODEL, True)
    for path, query in [("/v1/duplex", {}), ("/v1/realtime", {"duplex": "1"})]:
        assert read_upgrade(path, query, headers, MODEL).dialect is Dialect.DUPLEX


@pytest.mark.parametrize("value", ["0", "false", "off", "yes", ""])
def test_realtime_without_duplex_is_unsupported(value: str) -> None:
    with pytest.raises(DuplexError) as refused:
        read_upgrade("/v1/realtime", {"duplex": value}, {}, MODEL)

    assert refused.value.code == "unsupported"


@pytest.mark.e2e
def test_duplex_off_is_told_and_closed(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/realtime?duplex=0") as talk:
        (error,), code, reason = talk.ends()

    assert error["error"]["code"] == "unsupported"
    assert error["error"]["message"] == "Realtime API is not available"
    assert error["event_id"].startswith("event_")
    assert (code, reason) == (1000, "unsupported")
    assert omni.opened.empty()


@pytest.mark.e2e
def test_openai_session_is_created_before_any_client_event(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/realtime?model=gpt-realtime&unknown=1") as talk:
        created = talk.recv()
        assert created["type"] == "session.created"
        assert created["session"]["model"] == "gpt-realtime"
        assert "capabilities" not in created["session"]
        assert omni.opened.get(timeout=60).config.input_format.sample_rate_hz == 24000


@pytest.mark.e2e
def test_openai_first_update_is_an_ordinary_update(base: str, omni: FakeOmni) -> None:
    with Talk(base, "/v1/realtime") as talk:
        talk.until("session.created")
        talk.send("session.update", session={"type": "realtime", "instructions": "be brief"})
        updated = talk.recv()

    assert updated["session"]["instructions"] == "be brief"
    assert omni.opened.qsize() == 1


@pytest.mark.e2e
@pytest.mark.parametrize(
    "path",
    ["/v1/duplex?model=m&autostart=0", "/v1/realtime?autostart=0", "/v1/realtime?model=m&resume=1"],
)
def test_duplex_first_update_opens_the_session_with_it(
    path: str, base: str, omni: FakeOmni
) -> None:
    with Talk(base, path) as talk:
        talk.send("session.update", session={"instructions": "be brief"})
        created, updated = talk.until("session.updated")

    assert created["session"]["instructions"] == "be brief"
    assert created["session"]["capabilities"]["chunk_period_ms"] == 1000
    assert updated["server_event_seq"] == 2
    assert omni.opened.get(timeout=60).commands == []


@pytest.mark.e2e
def test_duplex_with_a_model_opens_before_reading(base: str) -> None:
    with Talk(base, "/v1/realtime?duplex=1&model=m") as talk:
        created = talk.recv()

    assert (created["type"], created["session"]["model"]) == ("session.created", "m")


@pytest.mark.e2e
def test_any_other_first_event_opens_and_then_runs(base: str) -> None:
    with Talk(base, "/v1/duplex") as talk:
        talk.send("session.heartbeat")
        types = [event["type"] for event in talk.until("session.heartbeat_ack")]

    assert types == ["session.created", "session.updated", "session.heartbeat_ack"]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("first", "code", "param"),
    [
        ("{", "invalid_json", None),
        ("[]", "bad_event", None),
        (b"\x00\x01", "bad_event", None),
        ('{"type": "nonsense", "event_id": "e1"}', "unknown_event", "type"),
        (
            '{"type":"session.resume","event_id":"e1","session_id":"s","resume_token":"t"}',
            "session_resume_expired",
            "session_id",
        ),
        (
            '{"type":"session.update","event_id":"e1","session":{"input_audio_format":"mp3"}}',
            "unsupported_audio_format",
            "input_audio_format",
        ),
        (
            '{"type":"session.update","event_id":"e1","session":{"turn_detection":{"type":"x"}}}',
            "unsupported_turn_detection",
            "turn_detection.type",
        ),
    ],
)
def test_a_failed_handshake_keeps_its_code_and_closes_with_it(
    base: str, omni: FakeOmni, first: str | bytes, code: str, param: str | None
) -> None:
    with Talk(base, "/v1/duplex") as talk:
        talk.socket.send(first)
        (event,), close_code, reason = talk.ends()

    error: dict[str, Any] = event["error"]
    assert (error["code"], error.get("param")) == (code, param)
    assert error.get("event_id") == ("e1" if "e1" in str(first) else None)
    assert (close_code, reason) == (1008, code)
    assert omni.sessions == []


@pytest.mark.e2e
def test_a_silent_client_times_out(omni: FakeOmni, serve_app: ServeApp) -> None:
    serving = DuplexServing(omni, MODEL, config_timeout_s=0.0)
    base = serve_app(create_app(omni, serving=serving))

    with Talk(base, "/v1/duplex") as talk:
        (event,), code, reason = talk.ends()

    assert event["error"]["code"] == "config_timeout"
    assert (code, reason) == (1008, "config_timeout")


@pytest.mark.e2e
def test_only_so_many_may_be_silent(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omniduplex.entrypoints.duplex.serving.MAX_WAITING", 1)

    with Talk(base, "/v1/duplex") as silent:
        with Talk(base, "/v1/duplex") as one_too_many:
            (event,), code, reason = one_too_many.ends()
        with Talk(base, "/v1/realtime") as talking:
            assert talking.recv()["type"] == "session.created"
        silent.send("session.update", session={})
        assert silent.recv()["type"] == "session.created"

    assert event["error"]["code"] == "resource_exhausted"
    assert (code, reason) == (1008, "resource_exhausted")


@pytest.mark.e2e
@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/duplex?model=m", "/v1/duplex"])
def test_a_full_server_says_so(omni: FakeOmni, base: str, path: str) -> None:
    omni.max_sessions = 0
    with Talk(base, path) as talk:
        if path == "/v1/duplex":
            talk.send("session.update", event_id="e1", session={})
        (event,), code, reason = talk.ends()

    assert event["error"]["code"] == "resource_exhausted"
    assert event["error"]["type"] == "rate_limit_error"
    assert (code, reason) == (1008, "resource_exhausted")


@pytest.mark.e2e
def test_an_engine_fault_on_opening_is_reported(omni: FakeOmni, base: str) -> None:
    omni.fault = RuntimeError("stage died")
    with Talk(base, "/v1/realtime") as talk:
        (event,), code, _ = talk.ends()

    assert event["error"]["code"] == "internal_error"
    assert "stage died" not in event["error"]["message"]
    assert code == 1011
