"""The unmodified `openai` Python package talks with the server as with its own."""

from __future__ import annotations

import pytest
from tests.e2e.hearing import understood, way
from tests.e2e.openai_caller import openai_session
from tests.e2e.openai_events import complaints
from tests.e2e.recordings import recording
from tests.e2e.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.timeout(500)]

# Interop, MUST 22: what a stock client relies on, in this order.
TURN = [
    "session.created",
    "session.updated",
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.input_audio_transcription.completed",
    "response.created",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.done",
]


@pytest.mark.local
@pytest.mark.parametrize("name", ["capital", "kitchen", "human_disposed"])
async def test_a_spoken_question_is_answered(local_server: Server, name: str) -> None:
    question = recording(name)
    async with openai_session(local_server.http, "omniduplex/local", "server_vad") as caller:
        caller.microphone.say(question)
        response = await caller.answer()
        seen = [event["type"] for event in caller.events]

    assert way(seen, TURN) == TURN
    assert [wrong for event in caller.events for wrong in complaints(event)] == []
    heard = caller.all("conversation.item.input_audio_transcription.completed")
    assert understood(question.words, " ".join(event["transcript"] for event in heard))
    assert response["status"] in ("completed", "incomplete")
    assert caller.audio(response["id"])
    assert caller.transcript(response["id"]).strip()


@pytest.mark.local
async def test_semantic_vad_is_taken_too(local_server: Server) -> None:
    async with openai_session(local_server.http, "omniduplex/local", "semantic_vad") as caller:
        caller.microphone.say(recording("week"))
        await caller.first("response.done")

    assert [wrong for event in caller.events for wrong in complaints(event)] == []


@pytest.mark.parametrize("vad", ["server_vad", "semantic_vad"])
async def test_echo_answers_and_falls_silent_when_talked_over(
    echo_server: Server, vad: str
) -> None:
    async with openai_session(echo_server.http, "omniduplex/echo", vad) as caller:
        # The answer is as long: the user has 5 s to talk over it.
        caller.microphone.say(recording("human_selfish"))
        first = await caller.first("response.done")
        caller.microphone.say(recording("week"))
        cleared = await caller.first("output_audio_buffer.cleared")
        second = await caller.nth("response.done", 2)

    # Echo makes its whole answer at once: it is complete, but not yet heard.
    assert first["response"]["status"] == second["response"]["status"] == "completed"
    assert cleared["response_id"] == first["response"]["id"] != second["response"]["id"]
    assert [wrong for event in caller.events for wrong in complaints(event)] == []
