"""The whole house under real sockets: the echo model, its engine, the server."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.talk import Talk

from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.server import bind

pytestmark = pytest.mark.e2e

MODEL = "omniduplex/echo"
RATE_HZ = 16_000


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    """The echo model, for two sessions at a time."""
    pipeline = load_pipeline(MODEL, None)
    limits = msgspec.structs.replace(pipeline.duplex_session, max_sessions=2)
    with DuplexOmni(pipeline=msgspec.structs.replace(pipeline, duplex_session=limits)) as omni:
        yield omni


@pytest.fixture
def base(omni: DuplexOmni, serve_app: ServeApp) -> str:
    return serve_app(create_app(omni))


def say(talk: Talk, seconds: float, hz: float = 300) -> None:
    """Send a tone, which is speech to echo; a tone of 0 Hz is silence."""
    phase = np.arange(int(seconds * RATE_HZ)) * 2 * np.pi * hz / RATE_HZ
    pcm = (8000 * np.sin(phase)).astype("<i2").tobytes()
    talk.send("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())


def ask(talk: Talk) -> list[dict[str, Any]]:
    say(talk, 1.0)
    talk.send("input_audio_buffer.commit")
    talk.send("response.create")
    return talk.until("response.done")


BAD: dict[str, tuple[str, str]] = {
    "invalid JSON": ("{", "invalid_json"),
    "unknown event": (json.dumps({"type": "x", "event_id": "e1"}), "unknown_event"),
    "unknown format": (
        json.dumps(
            {
                "type": "session.update",
                "event_id": "e1",
                "session": {"input_audio_format": "opus"},
            }
        ),
        "unsupported_audio_format",
    ),
    "empty commit": (
        json.dumps({"type": "input_audio_buffer.commit", "event_id": "e1"}),
        "input_audio_buffer_empty",
    ),
    "too large": ("x" * 16 * 1024 * 1024, "event_too_large"),
    "cancel of nothing": (
        json.dumps({"type": "response.cancel", "event_id": "e1"}),
        "response_not_active",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_after_a_bad_event_the_next_question_is_answered(base: str, name: str) -> None:
    frame, code = BAD[name]
    with Talk(base, "/v1/duplex?model=m") as talk:
        talk.until("session.updated")
        talk.socket.send(frame)
        error = talk.until("error")[-1]["error"]
        events = ask(talk)

    assert error["code"] == code
    assert error.get("event_id") == ("e1" if "e1" in frame else None)
    assert events[-1]["response"]["status"] == "completed"
    assert any(event["type"] == "response.output_audio.delta" for event in events)


def test_server_vad_answers_an_openai_client(base: str) -> None:
    with Talk(base, "/v1/realtime?model=gpt-realtime") as talk:
        talk.until("session.created")
        say(talk, 1.0)
        say(talk, 2.0, hz=0)
        types = [event["type"] for event in talk.until("response.done")]

    assert types.index("input_audio_buffer.speech_started") < types.index("response.created")
    assert "response.output_audio.delta" in types


def test_the_sequence_has_no_gap_across_dialects(base: str) -> None:
    for path in ("/v1/realtime", "/v1/duplex?model=m"):
        with Talk(base, path) as talk:
            events = talk.until("session.created") + ask(talk)
        numbers = [event["server_event_seq"] for event in events]
        assert numbers == list(range(1, len(events) + 1))


def test_reopening_works_for_ever(base: str) -> None:
    for path in ("/v1/realtime", "/v1/duplex?model=m") * 50:
        with Talk(base, path) as talk:
            talk.until("session.created")
            talk.send("session.close")
            assert talk.ends()[1] == 1000


def test_a_third_caller_is_refused_until_one_leaves(base: str) -> None:
    with Talk(base, "/v1/realtime") as first, Talk(base, "/v1/realtime") as second:
        first.until("session.created")
        second.until("session.created")
        with Talk(base, "/v1/realtime") as third:
            (error,), code, _ = third.ends()
        assert (error["error"]["code"], code) == ("resource_exhausted", 1008)
        second.send("session.close")
        assert second.ends()[1] == 1000
        with Talk(base, "/v1/realtime") as fourth:
            fourth.until("session.created")


def test_serve_says_where_to_talk_and_leaves_politely() -> None:
    command = [sys.executable, "-m", "omniduplex.entrypoints.cli.main", "serve", MODEL]
    with subprocess.Popen(
        [
            *command,
            *("--port", "0", "--api-key", "sk-SECRET", "--drain-timeout", "0.2"),
            *("--log-level", "debug", "--log-json"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        lines: list[str] = []
        while "openai clients" not in "".join(lines[-1:]):
            lines.append(server.stderr.readline())
            assert lines[-1], "".join(lines)
        url = next(line.split()[-1] for line in lines if line.startswith("browser"))
        header = {"Authorization": "Bearer sk-SECRET"}
        with Talk(url.rstrip("/"), "/v1/duplex?model=m", additional_headers=header) as talk:
            talk.until("session.updated")
            server.send_signal(signal.SIGTERM)
            events, code, reason = talk.ends()
        rest = server.stderr.read()

    assert (events[0]["type"], events[0]["time_left_ms"]) == ("session.expiring", 200)
    assert (events[-1]["type"], events[-1]["reason"]) == ("session.closed", "shutdown")
    assert (code, reason) == (1001, "shutdown")
    assert server.returncode == 0
    assert "Stopped." in rest
    assert "Traceback" not in rest
    assert "sk-SECRET" not in "".join(lines) + rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_can_be_stopped_while_it_loads(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "omniduplex.entrypoints.cli.main", "serve", MODEL]
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert server.stderr.readline() == f"Loading {MODEL} ...\n"
        server.send_signal(number)
        rest = server.stderr.read()

    assert server.returncode == 0
    # Log lines come by a thread of their own, perhaps behind the last word.
    assert "Stopped." in rest.splitlines()
    assert "Traceback" not in rest


def test_a_taken_port_is_told_in_one_line() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "omniduplex.entrypoints.cli.main", "serve", MODEL]
        ended = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, timeout=100, check=False
        )

    assert ended.returncode == 1
    reason = f"Cannot listen on 127.0.0.1, port {port}: Address already in use; try --port"
    assert ended.stderr == f"{reason}\n"
