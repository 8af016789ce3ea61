"""The `openai` package's own client of the beta, over a socket."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.beta.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

BETA: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
MODEL = "gpt-4o-realtime-preview"
QUIET, LOUD = b"\0\0", b"\0\x20"


async def until(connection: Any, wire_type: str) -> list[dict[str, Any]]:
    """Read up to this event; the package's own models must take every one."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        while not events or events[-1]["type"] != wire_type:
            events.append((await connection.recv()).to_dict())
            BETA.validate_python(events[-1])
    return events


async def test_it_talks_writes_and_calls_a_tool(base: str) -> None:
    socket = base.replace("http", "ws", 1) + "/v1"  # or the package insists on TLS
    async with (
        AsyncOpenAI(api_key="sk-nobody", websocket_base_url=socket) as client,
        client.beta.realtime.connect(model=MODEL) as connection,
    ):
        opening = await until(connection, "conversation.created")
        assert [event["type"] for event in opening] == ["session.created", "conversation.created"]
        tool: Any = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
        await connection.session.update(
            session={"modalities": ["text", "audio"], "voice": "verse", "tools": [tool]}
        )
        updated = await until(connection, "session.updated")
        assert updated[-1]["session"]["voice"] == "verse"

        audio = base64.b64encode(LOUD * 24_000 + QUIET * 24_000).decode()
        await connection.input_audio_buffer.append(audio=audio)
        spoken = [event["type"] for event in await until(connection, "response.done")]
        assert spoken.index("input_audio_buffer.speech_started") < spoken.index("response.created")
        assert "response.audio.delta" in spoken
        assert "response.audio_transcript.done" in spoken
        assert "response.output_audio.delta" not in spoken

        content: Any = [{"type": "input_text", "text": "one"}]
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": content}
        )
        await connection.response.create(response={"modalities": ["text"]})
        written = await until(connection, "response.done")
        assert [e["text"] for e in written if e["type"] == "response.text.done"] == ["You said one"]

        content = [{"type": "input_text", "text": "call look_up noon"}]
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": content}
        )
        await connection.response.create()
        called = await until(connection, "response.done")
        (call,) = called[-1]["response"]["output"]
        assert (call["type"], call["name"]) == ("function_call", "look_up")
