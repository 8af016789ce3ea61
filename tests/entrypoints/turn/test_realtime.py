"""Half-duplex Realtime conversations over real sockets, most of them with the `openai` package."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.beta.realtime import RealtimeServerEvent as BetaServerEvent
from pydantic import TypeAdapter
from tests.engine.stage_models import Loud, Words
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.running import running
from tests.entrypoints.talk import Talk
from tests.entrypoints.turn.realtime_script import TIMEOUT_S, last, run, until
from tests.entrypoints.turn.sounds import MODEL, tone
from tests.entrypoints.turn.watched import WAIT_S, WatchedOmni, one_turn_at_a_time

from omniduplex.entrypoints.openai.turn_app import create_turn_app

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BETA: TypeAdapter[Any] = TypeAdapter(BetaServerEvent)
BETA_MODEL = "gpt-4o-realtime-preview"
"""One that the package's types of the beta know: they take no other."""

HALF_DUPLEX = "/v1/realtime?duplex=0"


# --- the openai package ------------------------------------------------------------------------


@pytest.mark.parametrize("query", [{}, {"duplex": "0"}])
def test_a_written_turn(turn_base: str, query: dict[str, str]) -> None:
    async def script(connection: AsyncRealtimeConnection) -> None:
        created = (await until(connection, "session.created"))[-1]["session"]
        assert created["audio"]["input"]["turn_detection"] is None
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        await until(connection, "session.updated")
        for text in ("good morning", "good night"):
            await connection.conversation.item.create(
                item={
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": text}],
                }
            )
            await connection.response.create()
            done = (await until(connection, "response.done"))[-1]["response"]
            (item,) = done["output"]
            assert item["content"] == [{"type": "output_text", "text": f"You said {text}"}]
            assert (done["status"], done["usage"]["output_tokens"]) == ("completed", 4)

    run(turn_base, MODEL, script, **query)


def test_a_spoken_turn(turn_base: str) -> None:
    async def script(connection: AsyncRealtimeConnection) -> None:
        await connection.session.update(
            session={"type": "realtime", "audio": {"input": {"turn_detection": None}}}
        )
        audio = tone(1200)
        for start in range(0, len(audio), 9600):
            piece = base64.b64encode(audio[start : start + 9600]).decode()
            await connection.input_audio_buffer.append(audio=piece)
        await connection.input_audio_buffer.commit()
        await connection.response.create()

        events = await until(connection, "response.done")
        heard = last(events, "conversation.item.input_audio_transcription.completed")
        assert heard["transcript"] == "tone 440 Hz 1.2 s"
        said = last(events, "response.output_audio_transcript.done")
        assert said["transcript"] == "You said tone 440 Hz 1.2 s"
        deltas = [one for one in events if one["type"] == "response.output_audio.delta"]
        pcm = b"".join(base64.b64decode(delta["delta"]) for delta in deltas)
        assert deltas[-1]["audio_duration_ms"] == len(pcm) / 2 / 24
        assert {(d["format"], d["sample_rate_hz"], d["channels"]) for d in deltas} == {
            ("pcm16", 24_000, 1)
        }

    run(turn_base, MODEL, script)


def test_a_tool_is_called(turn_base: str) -> None:
    async def script(connection: AsyncRealtimeConnection) -> None:
        tool: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
        await connection.session.update(session={"type": "realtime", "tools": [tool]})
        await connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "call weather"}],
            }
        )
        await connection.response.create()
        call = last(await until(connection, "response.done"), "response.output_item.done")["item"]
        assert (call["type"], call["name"]) == ("function_call", "weather")
        await connection.conversation.item.create(
            item={"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
        )
        await connection.response.create()
        events = await until(connection, "response.done")
        assert "sunny" in last(events, "response.output_audio_transcript.done")["transcript"]

    run(turn_base, MODEL, script)


def test_the_packages_client_of_the_beta(turn_base: str) -> None:
    async def converse() -> None:
        socket = turn_base.replace("http", "ws", 1) + "/v1"  # or the package insists on TLS
        async with (
            asyncio.timeout(TIMEOUT_S),
            AsyncOpenAI(api_key="any", websocket_base_url=socket) as client,
            client.beta.realtime.connect(
                model=BETA_MODEL, extra_query={"duplex": "0"}
            ) as connection,
        ):
            events: list[dict[str, Any]] = []
            await connection.input_audio_buffer.append(audio=base64.b64encode(tone(500)).decode())
            await connection.input_audio_buffer.commit()
            await connection.response.create()
            while not events or events[-1]["type"] != "response.done":
                events.append((await connection.recv()).to_dict())
                BETA.validate_python(events[-1])

        assert [event["type"] for event in events[:2]] == [
            "session.created",
            "conversation.created",
        ]
        assert events[0]["session"]["turn_detection"] is None
        said = last(events, "response.audio_transcript.done")
        assert said["transcript"] == "You said tone 440 Hz 0.5 s"
        delta = last(events, "response.audio.delta")
        assert (delta["sample_rate_hz"], delta["channels"]) == (24_000, 1)

    asyncio.run(converse())


# --- who asks for what is not here -------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message", "close_code"),
    [
        ("/v1/realtime?duplex=1", "VAD realtime is not enabled", 1008),
        ("/v1/realtime?duplex=TRUE", "VAD realtime is not enabled", 1008),
        ("/v1/duplex", "Duplex API is not available", 1000),
    ],
)
def test_there_are_no_sessions(turn_base: str, path: str, message: str, close_code: int) -> None:
    with Talk(turn_base, path) as talk:
        events, code, reason = talk.ends()
    (refused,) = events
    assert refused["error"]["code"] == "unsupported"
    assert refused["error"]["message"].startswith(f"{message}: ")
    assert "session_mode: turn" in refused["error"]["message"]
    assert (code, reason) == (close_code, "unsupported")


# --- endings -----------------------------------------------------------------------------------


@pytest.fixture
def words() -> Iterator[WatchedOmni]:
    with WatchedOmni(one_turn_at_a_time(Words, Loud)) as omni:
        yield omni


@pytest.fixture
def words_base(words: WatchedOmni, serve_app: ServeApp) -> str:
    return serve_app(create_turn_app(words))


def say(talk: Talk, text: str) -> None:
    part = {"type": "input_text", "text": text}
    item = {"type": "message", "role": "user", "content": [part]}
    talk.send("conversation.item.create", item=item)
    talk.send("response.create", response={"output_modalities": ["text"]})


def test_a_cancelled_answer_ends_its_turn(words: WatchedOmni, words_base: str) -> None:
    with Talk(words_base, HALF_DUPLEX) as talk:
        say(talk, "for ever")
        talk.until("response.output_text.delta")
        talk.send("response.cancel")
        done = talk.until("response.done")[-1]["response"]
        assert done["status"] == "cancelled"
        assert words.ended.wait(WAIT_S)
        say(talk, "again")
        assert talk.until("response.done")[-1]["response"]["status"] == "completed"


def test_a_client_that_leaves_ends_its_turn(words: WatchedOmni, words_base: str) -> None:
    with Talk(words_base, HALF_DUPLEX) as talk:
        say(talk, "for ever")
        talk.until("response.output_text.delta")
        assert not words.ended.is_set()
    assert words.ended.wait(WAIT_S)
    assert asyncio.run(words.active_turn_count()) == 0


@pytest.mark.parametrize(("text", "why"), [("fail", "asked to"), ("refuse", "told to")])
def test_a_turn_that_cannot_be_run_fails_the_response_alone(
    words_base: str, text: str, why: str
) -> None:
    with Talk(words_base, HALF_DUPLEX) as talk:
        say(talk, text)
        events = talk.until("response.done")
        error = last(events, "error")["error"]
        assert (error["code"], error["type"]) == ("response_error", "server_error")
        assert why in error["message"]
        assert events[-1]["response"]["status_details"]["error"]["code"] == "response_error"


def test_a_message_that_is_none_is_refused_and_the_conversation_goes_on(turn_base: str) -> None:
    with Talk(turn_base, HALF_DUPLEX) as talk:
        talk.until("session.created")
        talk.socket.send("{")
        assert talk.recv()["error"]["code"] == "invalid_json"
        talk.socket.send(b"{}")
        assert talk.recv()["error"]["code"] == "bad_event"
        say(talk, "hello")
        assert talk.until("response.done")[-1]["response"]["status"] == "completed"


def test_a_server_that_stops_lets_the_answer_end(words: WatchedOmni) -> None:
    app = create_turn_app(words)
    with (
        running(app, drain_timeout_s=TIMEOUT_S) as server,
        Talk(server.base, HALF_DUPLEX) as talk,
        Talk(server.base, HALF_DUPLEX) as idle,
    ):
        say(talk, "for ever")
        talk.until("response.output_text.delta")
        idle.until("session.created")
        server.signal()
        assert idle.ends()[1:] == (1001, "shutdown")
        talk.send("response.cancel")
        events, code, reason = talk.ends()
        assert last(events, "response.done")["response"]["status"] == "cancelled"
        assert (code, reason) == (1001, "shutdown")
        assert server.ended()


def test_who_says_nothing_for_too_long_is_let_go(turn_base: str) -> None:
    with Talk(turn_base, HALF_DUPLEX) as talk:
        talk.send("session.update", session={"type": "realtime", "idle_timeout_s": 0.3})
        events, code, reason = talk.ends()
    assert events[-1]["type"] == "session.updated"
    assert (code, reason) == (1000, "idle_ttl_expired")
