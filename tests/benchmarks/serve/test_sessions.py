"""What both dialects make of what the server sends."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve

from omniduplex.benchmarks.serve import duplex_session, openai_session
from omniduplex.benchmarks.serve.duplex_session import DuplexSession
from omniduplex.benchmarks.serve.openai_session import OpenAISession
from omniduplex.benchmarks.serve.session import SESSION_ERRORS, Arrival, ServeSession, stage_metrics
from omniduplex.clients import MonotonicClock
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    Dialect,
    DuplexCommand,
    RealtimeEvent,
    TextDelta,
    TranscriptDelta,
    UpdateSession,
    apply_patch,
    decode_command,
    decode_event,
    default_config,
)

OUTPUT = AudioFormat(sample_rate_hz=24_000)
STAGES = {"0": {"units": 3.0}}
METADATA = {"omniduplex": {"stage_metrics": STAGES}, "epoch": 1}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def openai(**event: Any) -> Arrival | None:
    return openai_session.arrival(msgspec.convert(event, openai_session.WireEvent))


@pytest.mark.parametrize("kind", ["response.output_audio.delta", "response.audio.delta"])
def test_openai_audio_lasts_as_long_as_its_samples(kind: str) -> None:
    delta = base64.b64encode(bytes(4800)).decode()
    assert openai(type=kind, response_id="r", delta=delta) == Arrival(
        response_id="r", audio_ms=100.0
    )


@pytest.mark.parametrize(
    "kind", ["response.output_audio_transcript.delta", "response.output_text.delta"]
)
def test_openai_words_count_in_a_transcript_or_a_text(kind: str) -> None:
    found = openai(type=kind, response_id="r", delta="Hi")
    assert found == Arrival(response_id="r", text=True)


def test_openai_answers_end_with_what_the_stages_said() -> None:
    response = {"id": "r", "status": "completed", "metadata": METADATA}
    found = openai(type="response.done", response=response)
    assert found == Arrival(response_id="r", status="completed", stages=STAGES)


def test_openai_errors_are_told_and_other_events_passed_over() -> None:
    found = openai(type="error", error={"code": "no", "message": "not so"})
    assert found == Arrival(error="no: not so")
    assert openai(type="rate_limits.updated") is None


def test_the_metadata_of_another_server_is_no_stage() -> None:
    assert stage_metrics({"omniduplex": "mine"}) == {}
    assert stage_metrics({"order": "7"}) == {}
    assert stage_metrics(None) == {}


def test_duplex_audio_lasts_as_its_own_format_says() -> None:
    delta = AudioDelta(
        response_id="r", item_id="i", delta=bytes(3200), format="pcm16", sample_rate_hz=16_000
    )
    found = duplex_session.arrival(delta, OUTPUT)
    assert found == Arrival(response_id="r", audio_ms=100.0)


@pytest.mark.parametrize("kind", [TranscriptDelta, TextDelta])
def test_duplex_words_count_in_a_transcript_or_a_text(kind: type[Any]) -> None:
    event: RealtimeEvent = kind(response_id="r", item_id="i", delta="Hi")
    assert duplex_session.arrival(event, OUTPUT) == Arrival(response_id="r", text=True)


@pytest.mark.parametrize(
    ("code", "found"),
    [("bad_audio", Arrival(error="bad_audio: no")), ("playback_stale", None)],
)
def test_a_late_report_of_playback_is_no_error(code: str, found: Arrival | None) -> None:
    error = {"type": "invalid_request_error", "code": code, "message": "no"}
    event = decode_event(msgspec.json.encode({"type": "error", "error": error}).decode())
    assert duplex_session.arrival(event, OUTPUT) == found


@pytest.mark.anyio
@pytest.mark.parametrize("backend", ["duplex", "openai"])
async def test_the_key_goes_along_and_a_refusal_is_the_session_s_own_error(backend: str) -> None:
    keys = []

    async def refuse(socket: ServerConnection) -> None:
        assert socket.request is not None
        keys.append(socket.request.headers.get("Authorization"))
        error = {"type": "invalid_request_error", "code": "no", "message": "not so"}
        await socket.recv()
        await socket.send(msgspec.json.encode({"type": "error", "error": error}).decode())

    async with serve(refuse, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        session: ServeSession = OpenAISession(url, "m", "secret")
        if backend == "duplex":
            session = DuplexSession(url, "m", MonotonicClock(), "secret")
        with pytest.raises(SESSION_ERRORS, match="not so"):
            await session.__aenter__()
    assert keys == ["Bearer secret"]


@pytest.mark.anyio
async def test_only_commits_end_the_turns_of_a_duplex_session() -> None:
    asked: list[DuplexCommand] = []

    async def refuse(socket: ServerConnection) -> None:
        asked.append(decode_command(await socket.recv()))
        error = {"type": "invalid_request_error", "code": "no", "message": "not so"}
        await socket.send(msgspec.json.encode({"type": "error", "error": error}).decode())

    async with serve(refuse, "127.0.0.1", 0) as server:
        host, port = next(iter(server.sockets)).getsockname()[:2]
        with pytest.raises(SESSION_ERRORS):
            async with DuplexSession(f"ws://{host}:{port}", "m", MonotonicClock()):
                pass

    (update,) = asked
    assert isinstance(update, UpdateSession)
    config = apply_patch(default_config("m", Dialect.DUPLEX), update.session)
    assert not config.decides_turns
