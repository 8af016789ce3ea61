from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve

from omniduplex.benchmarks.turns.line import LineError, LineEvent, SessionWish
from omniduplex.benchmarks.turns.openai_line import (
    OpenAILine,
    WireEvent,
    line_event,
    realtime_url,
    session_update,
)

WISH = SessionWish(model="gpt", policy="barge_in_on_speech", vad="server_vad", instructions="Hi.")
PCM = b"\x01\x00\x02\x00"


def read(event: dict[str, Any], *, clears: bool = True) -> LineEvent:
    return line_event(msgspec.convert(event, WireEvent), clears=clears)


@pytest.mark.parametrize("kind", ["response.output_audio.delta", "response.audio.delta"])
def test_audio_comes_under_the_name_of_today_and_of_the_beta(kind: str) -> None:
    found = read({"type": kind, "response_id": "r", "delta": base64.b64encode(PCM).decode()})
    assert (found.response_id, found.audio) == ("r", PCM)


def test_words_come_from_the_transcript_of_the_audio() -> None:
    found = read(
        {"type": "response.output_audio_transcript.delta", "response_id": "r", "delta": "Hello"}
    )
    assert (found.text, found.audio) == ("Hello", b"")


@pytest.mark.parametrize(("status", "silences"), [("completed", False), ("cancelled", True)])
def test_a_response_ends_with_its_status(status: str, silences: bool) -> None:
    found = read({"type": "response.done", "response": {"id": "r", "status": status}})
    assert (found.response_id, found.ended, found.silences, found.note) == (
        "r",
        True,
        silences,
        status,
    )


@pytest.mark.parametrize("clears", [True, False])
def test_the_client_clears_its_loudspeaker_at_speech_if_speech_may_interrupt(
    clears: bool,
) -> None:
    found = read({"type": "input_audio_buffer.speech_started", "item_id": "i"}, clears=clears)
    assert (found.silences, found.response_id) == (clears, None)
    assert read({"type": "output_audio_buffer.cleared"}, clears=clears).silences


def test_an_error_is_told() -> None:
    found = read({"type": "error", "error": {"code": "no", "message": "not so"}})
    assert found.error == "no: not so"


def test_what_the_server_heard_is_told() -> None:
    heard = "conversation.item.input_audio_transcription.completed"
    assert read({"type": heard, "transcript": "Wait, stop."}).note == "Wait, stop."


def test_an_event_that_nobody_knows_is_an_event() -> None:
    assert read({"type": "conversation.surprise", "delta": "?", "more": [1]}) == LineEvent(
        type="conversation.surprise"
    )


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("ws://h:1", "ws://h:1/v1/realtime?model=gpt"),
        ("ws://h:1/", "ws://h:1/v1/realtime?model=gpt"),
        ("wss://h/openai?api-version=7", "wss://h/openai?model=gpt&api-version=7"),
        ("wss://h/v1/realtime?model=other", "wss://h/v1/realtime?model=other"),
    ],
)
def test_the_url_gets_a_path_and_a_model_unless_it_has_them(url: str, found: str) -> None:
    assert realtime_url(url, "gpt") == found


@pytest.mark.parametrize(("policy", "interrupts"), [("adaptive", True), ("listen_only", False)])
def test_the_policy_is_whether_speech_interrupts(policy: str, interrupts: bool) -> None:
    session = session_update(msgspec.structs.replace(WISH, policy=policy))["session"]
    detection = session["audio"]["input"]["turn_detection"]
    assert detection["interrupt_response"] is interrupts


@asynccontextmanager
async def peer(*answers: dict[str, Any]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server that answers the first message with these; all that it got, once it is over."""
    received: list[dict[str, Any]] = []
    gone = asyncio.Event()

    async def talk(socket: ServerConnection) -> None:
        assert socket.request is not None
        received.append(
            {"path": socket.request.path, "key": socket.request.headers.get("Authorization")}
        )
        async for message in socket:
            received.append(json.loads(message))
            if len(received) == 2:
                for answer in answers:
                    await socket.send(json.dumps(answer))
        gone.set()

    async with serve(talk, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}", received
        async with asyncio.timeout(30):
            await gone.wait()


UPDATED = {"type": "session.updated"}
DELTA = {
    "type": "response.output_audio.delta",
    "response_id": "r",
    "item_id": "item",
    "delta": base64.b64encode(PCM).decode(),
}


@pytest.mark.anyio
async def test_a_session_is_asked_for_audio_flows_and_a_cut_is_told() -> None:
    async with peer({"type": "session.created"}, UPDATED, DELTA) as (url, received):
        wish = msgspec.structs.replace(WISH, api_key="secret")
        async with OpenAILine(url, wish) as line:
            await line.send(PCM)
            event = await anext(line.events())
            await line.report_heard("r", 20.7, cut_off=False)
            await line.report_heard("r", 40.7, cut_off=True)
    assert event.audio == PCM
    assert received[0] == {"path": "/v1/realtime?model=gpt", "key": "Bearer secret"}
    assert received[1] == session_update(wish)
    assert base64.b64decode(received[2]["audio"]) == PCM
    assert received[3] == {
        "type": "conversation.item.truncate",
        "item_id": "item",
        "content_index": 0,
        "audio_end_ms": 40,
    }


@pytest.mark.anyio
async def test_a_session_that_is_refused_is_an_error_with_its_reason() -> None:
    refusal = {"type": "error", "error": {"code": "model", "message": "no such model"}}
    async with peer(refusal) as (url, _):
        with pytest.raises(LineError, match="model: no such model"):
            await OpenAILine(url, WISH).__aenter__()


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LineError, match="cannot connect"):
        await OpenAILine("ws://127.0.0.1:9", WISH).__aenter__()
