"""Talking over an answer: it stops at once, and the model knows only what was heard of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.e2e.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.e2e.hearing import begun, understood
from tests.e2e.openai_caller import openai_session
from tests.e2e.openai_events import complaints
from tests.e2e.recordings import Microphone, recording
from tests.e2e.server import Server, serve_scripted

from omniduplex.audio.pcm import byte_count
from omniduplex.audio.resample import StreamResampler
from omniduplex.benchmarks.wer import normalise_words
from omniduplex.clients import DuplexClient, EventCollector, MonotonicClock, RealTimePlayer
from omniduplex.clients.local import create_duplex_session_config
from omniduplex.models.local.asr import Recognizer
from omniduplex.protocol.duplex import (
    AudioDelta,
    InputCommitted,
    PlaybackAcknowledged,
    ResponseDone,
    TranscriptionCompleted,
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.local,
    pytest.mark.anyio,
    pytest.mark.timeout(500),
]

MODEL = "omniduplex/local"
TIMEOUT_S = 200.0
HEARD_MS = 3000
# In 220 cuts of answers within 6.5 s, the words heard were up to 2 more than the words counted.
UNSURE_WORDS = 5
STORY = (
    "Once upon a time there was a small village near the sea. The people there went fishing every "
    "morning before the sun came up. One day an old man found a golden box on the beach and took "
    "it home with him. Nobody in the village knew where the box had come from."
)
QUESTION, INTERRUPTION = recording("joke"), recording("week")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(STORY, "All right, I will stop here.") as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def server(
    endpoint: ChatEndpoint, recognizer: Recognizer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The embedded model with the scripted endpoint for a language model."""
    with serve_scripted(endpoint.base_url, tmp_path_factory.mktemp("deploy")) as server:
        yield server


@pytest.fixture(autouse=True)
def no_requests(endpoint: ChatEndpoint) -> None:
    endpoint.requests.clear()


def spoken_by(recognizer: Recognizer, pcm: bytes, rate_hz: int, ms: float) -> list[str]:
    """The words of the story in the first `ms` of an answer's audio."""
    heard = StreamResampler(rate_hz, 16_000).process(pcm[: byte_count(int(ms), rate_hz)], last=True)
    return begun(normalise_words(STORY), normalise_words(recognizer.transcribe(heard).text))


def assistant_words(prompt: list[dict[str, Any]]) -> list[str]:
    """What a prompt says that the assistant has said, a beginning of the story."""
    (said,) = [message["content"] for message in prompt if message["role"] == "assistant"]
    assert STORY.startswith(said)
    return normalise_words(said)


async def test_only_what_the_player_reported_is_in_the_next_prompt(
    server: Server, endpoint: ChatEndpoint, recognizer: Recognizer
) -> None:
    collector, clock = EventCollector(), MonotonicClock()
    config = create_duplex_session_config()
    async with DuplexClient(server.url, model=MODEL, config=config) as client:
        player = RealTimePlayer(client, clock=clock)
        microphone = Microphone(client.append_audio)

        async def converse() -> None:
            interrupted = False
            async for event in client.events():
                collector.add(event)
                player.feed(event)
                match event:
                    case PlaybackAcknowledged():
                        if not interrupted and event.event.played_ms >= HEARD_MS:
                            interrupted = True
                            microphone.say(INTERRUPTION)
                    case ResponseDone() if len(collector.response_ids) == 2:
                        return

        reporting = asyncio.create_task(player.run())
        async with microphone.open(), asyncio.timeout(TIMEOUT_S):
            microphone.say(QUESTION)
            await converse()
        reporting.cancel()
        with suppress(asyncio.CancelledError):
            await reporting

    first, second = collector.response_ids
    done = collector.response_done(first)
    assert done is not None
    assert done.response.status == "cancelled"
    after = collector.events[collector.events.index(done) + 1 :]
    assert first not in {e.response_id for e in after if isinstance(e, AudioDelta)}
    assert collector.audio_ms(second) > 0

    committed = [e.item_id for e in collector.events if isinstance(e, InputCommitted)]
    heard = {
        e.item_id: e.transcript for e in collector.events if isinstance(e, TranscriptionCompleted)
    }
    assert len(committed) == 2
    interruption = heard[committed[1]]
    assert understood(INTERRUPTION.words, interruption)

    said = assistant_words(endpoint.prompt_ending(interruption))
    rate_hz = collector.output_format.sample_rate_hz
    played_ms = player.played_ms(first)
    assert HEARD_MS <= played_ms < collector.audio_ms(first)
    spoken = spoken_by(recognizer, bytes(collector.response_audio[first]), rate_hz, played_ms)
    assert abs(len(said) - len(spoken)) <= UNSURE_WORDS, (said, spoken)


@pytest.mark.parametrize("truncates", [True, False])
async def test_a_stock_client_is_believed_or_its_playback_is_reckoned(
    server: Server, endpoint: ChatEndpoint, recognizer: Recognizer, *, truncates: bool
) -> None:
    kept_ms = 2000
    async with openai_session(server.http, MODEL, "server_vad") as caller:
        caller.microphone.say(QUESTION)
        await caller.first("response.output_audio.delta")
        caller.microphone.say(INTERRUPTION, pause_ms=HEARD_MS)
        await caller.nth("input_audio_buffer.speech_started", 2)
        first = caller.all("response.output_audio.delta")[0]
        if truncates:
            await caller.connection.conversation.item.truncate(
                item_id=first["item_id"], content_index=0, audio_end_ms=kept_ms
            )
        done = await caller.first("response.done")
        await caller.nth("response.done", 2)

    assert done["response"]["id"] == first["response_id"]
    assert done["response"]["status"] == "cancelled"
    assert done["response"]["status_details"]["reason"] == "turn_detected"
    after = caller.events[caller.events.index(done) + 1 :]
    assert first["response_id"] not in {
        event["response_id"] for event in after if event["type"] == "response.output_audio.delta"
    }
    assert [wrong for event in caller.events for wrong in complaints(event)] == []

    _, heard = caller.all("conversation.item.input_audio_transcription.completed")
    assert understood(INTERRUPTION.words, heard["transcript"])
    said = assistant_words(endpoint.prompt_ending(heard["transcript"]))
    assert said
    if truncates:
        pcm = caller.audio(first["response_id"])
        spoken = spoken_by(recognizer, pcm, 24_000, kept_ms)
        assert abs(len(said) - len(spoken)) <= UNSURE_WORDS, (said, spoken)
    else:
        assert len(said) < len(normalise_words(STORY))
