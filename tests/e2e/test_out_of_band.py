"""The unmodified `openai` package asks beside the conversation while an answer is spoken."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract.beside import two_echoes
from tests.e2e.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.e2e.openai_caller import RATE_HZ, OpenAICaller, openai_caller
from tests.e2e.openai_events import complaints
from tests.e2e.server import serve_scripted

from omniduplex.models.local.asr import Recognizer

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.timeout(300)]

STORY = (
    "Once upon a time there was a small village near the sea. The people there went fishing every "
    "morning before the sun came up."
)
MOOD = "They sound cheerful."


@asynccontextmanager
async def typing(http: str, model: str) -> AsyncIterator[OpenAICaller]:
    """A session without a microphone, whose client ends turns."""
    async with openai_caller(http, model) as caller:
        await caller.connection.session.update(
            session={"type": "realtime", "audio": {"input": {"turn_detection": None}}}
        )
        await caller.first("session.updated")
        yield caller


async def begin_an_answer(caller: OpenAICaller, question: str) -> str:
    """Ask, and hear the first of the answer; the id of its response."""
    message: Any = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": question}],
    }
    await caller.connection.conversation.item.create(item=message)
    await caller.connection.response.create()
    await be_silent(caller, 0.2)
    delta = await caller.first("response.output_audio.delta")
    return str(delta["response_id"])


async def be_silent(caller: OpenAICaller, seconds: float) -> None:
    silence = base64.b64encode(bytes(2 * int(RATE_HZ * seconds))).decode()
    await caller.connection.input_audio_buffer.append(audio=silence)


async def ask_beside(caller: OpenAICaller, *said: tuple[str, str]) -> dict[str, Any]:
    """Ask about what somebody said, in writing; the response as it ended."""
    given: Any = [
        {"type": "message", "role": role, "content": [{"type": kind_of(role), "text": text}]}
        for role, text in said
    ]
    await caller.connection.response.create(
        response={
            "conversation": "none",
            "metadata": {"topic": "mood"},
            "output_modalities": ["text"],
            "input": given,
        }
    )
    found = await caller.until(
        lambda _: [
            event["response"]
            for event in caller.all("response.done")
            if event["response"].get("metadata") == {"topic": "mood"}
        ]
    )
    assert isinstance(found[0], dict)
    return found[0]


def kind_of(role: str) -> str:
    return "output_text" if role == "assistant" else "input_text"


async def end_of(caller: OpenAICaller, response_id: str) -> dict[str, Any]:
    found = await caller.until(
        lambda _: [
            event["response"]
            for event in caller.all("response.done")
            if event["response"]["id"] == response_id
        ]
    )
    assert isinstance(found[0], dict)
    return found[0]


def written(response: dict[str, Any]) -> str:
    (item,) = response["output"]
    (part,) = item["content"]
    return str(part["text"]).strip()


async def test_echo_writes_beside_what_it_says() -> None:
    with two_echoes(beside_ends=True) as base:
        async with typing(base, "omniduplex/echo") as caller:
            answer = await begin_an_answer(caller, STORY)
            beside = await ask_beside(caller, ("user", "how do they feel"))
            assert written(beside) == "You said how do they feel"
            # The answer goes on as long as it hears something: it is not over.
            assert [done["response"]["id"] for done in caller.all("response.done")] == [
                beside["id"]
            ]
            await be_silent(caller, 30.0)
            assert (await end_of(caller, answer))["status"] == "completed"
    assert [wrong for event in caller.events for wrong in complaints(event)] == []
    assert {e["response_id"] for e in caller.all("response.output_audio.delta")} == {answer}
    added = {event["item"]["id"] for event in caller.all("conversation.item.added")}
    assert beside["output"][0]["id"] not in added


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(STORY, MOOD) as endpoint:
        yield endpoint


@pytest.mark.local
async def test_the_embedded_model_writes_beside_what_it_says(
    endpoint: ChatEndpoint, recognizer: Recognizer, tmp_path: Path
) -> None:
    with serve_scripted(endpoint.base_url, tmp_path) as server:
        async with typing(server.http, "omniduplex/local") as caller:
            answer = await begin_an_answer(caller, "Tell me a story")
            beside = await ask_beside(
                caller, ("user", "I won!"), ("assistant", "Nice."), ("user", "How do I feel?")
            )
            assert written(beside) == MOOD
            # The story never ends by itself.
            assert await end_of(caller, beside["id"]) == beside
            assert len(caller.all("response.done")) == 1
            await caller.connection.response.cancel()
            assert (await end_of(caller, answer))["status"] == "cancelled"
    assert [wrong for event in caller.events for wrong in complaints(event)] == []
    asked = endpoint.prompt_ending("How do I feel?")
    assert "Tell me a story" not in [message["content"] for message in asked]
