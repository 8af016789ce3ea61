"""A person asks, the embedded model answers in a voice, over the wire and in real time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from tests.e2e.hearing import way
from tests.e2e.recordings import Microphone, Recording, recordings
from tests.e2e.server import Server

from omniduplex.audio.resample import StreamResampler
from omniduplex.benchmarks.wer import total_error_rate
from omniduplex.clients import (
    DuplexClient,
    DuplexProtocolError,
    EventCollector,
    ServerEvent,
    Subscription,
    wire_type,
)
from omniduplex.clients.local import create_duplex_session_config
from omniduplex.models.local.asr import Recognizer
from omniduplex.protocol.duplex import ErrorEvent, ResponseDone, TranscriptionCompleted

pytestmark = [pytest.mark.e2e, pytest.mark.local, pytest.mark.timeout(900)]

MODEL = "omniduplex/local"
ANSWER_TIMEOUT_S = 120.0
CALLERS = 2
QUESTIONS = recordings()
# Of ten made questions no word is misheard here, and one of the 22 that two people say.
MAX_QUESTION_WER = 0.15
# One word of 25 is: the model makes up words and numbers that a recogniser writes in another way.
MAX_ANSWER_WER = 0.2

# The way of one spoken turn, of which everything else hangs.
TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.input_audio_transcription.completed",
    "response.created",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.done",
]


@dataclass(frozen=True)
class Exchange:
    """One question, and all that came back for it."""

    question: Recording
    collector: EventCollector

    @property
    def heard(self) -> str:
        """The user's words as the server heard them."""
        events = self.collector.events
        return " ".join(e.transcript for e in events if isinstance(e, TranscriptionCompleted))

    @property
    def ending(self) -> ResponseDone:
        """The end of the answer that nobody talked over."""
        (only,) = filter(is_ending, self.collector.events)
        assert isinstance(only, ResponseDone)
        return only

    @property
    def response_id(self) -> str:
        return self.ending.response.id

    @property
    def way(self) -> list[str]:
        events = self.collector.events[: self.collector.events.index(self.ending) + 1]
        return way([wire_type(event) for event in events], TURN)


def is_ending(event: ServerEvent) -> bool:
    return isinstance(event, ResponseDone) and event.response.status != "cancelled"


async def answered(events: Subscription[ServerEvent]) -> None:
    """Wait for the end of an answer that the user does not go on talking over."""
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        async for event in events:
            if isinstance(event, ErrorEvent):
                raise DuplexProtocolError.from_event(event)
            if is_ending(event):
                return


async def ask(url: str, question: Recording) -> Exchange:
    config = create_duplex_session_config(
        instructions="Answer in one short sentence.", temperature=0.0
    )
    collector = EventCollector()
    async with DuplexClient(url, model=MODEL, config=config) as client:
        consuming = asyncio.create_task(collector.consume(client))
        events = client.events()
        async with Microphone(client.append_audio).open() as microphone:
            microphone.say(question)
            await answered(events)
    await consuming
    return Exchange(question, collector)


async def ask_all(url: str) -> list[Exchange]:
    lines = asyncio.Semaphore(CALLERS)

    async def call(question: Recording) -> Exchange:
        async with lines:
            return await ask(url, question)

    return await asyncio.gather(*map(call, QUESTIONS))


@pytest.fixture(scope="module")
def exchanges(local_server: Server) -> list[Exchange]:
    return asyncio.run(ask_all(local_server.url))


def test_every_question_takes_its_way(exchanges: list[Exchange]) -> None:
    for exchange in exchanges:
        assert exchange.way == TURN, exchange.question.name
        assert not exchange.collector.errors()


def test_the_user_is_understood(exchanges: list[Exchange]) -> None:
    made = [e for e in exchanges if not e.question.name.startswith("human_")]
    people = [e for e in exchanges if e.question.name.startswith("human_")]
    assert len(made) == 10
    for group in (made, people):
        heard = [(e.question.words, e.heard) for e in group]
        assert total_error_rate(heard) <= MAX_QUESTION_WER, heard


def test_every_answer_is_spoken_to_its_end(exchanges: list[Exchange]) -> None:
    endings = []
    for exchange in exchanges:
        response = exchange.ending.response
        endings.append(response.status)
        assert exchange.collector.response_text(exchange.response_id).strip()
        assert exchange.collector.audio_ms(exchange.response_id) > 0
        # The small model rambles where it should be short, and its length is bounded.
        if response.status != "completed":
            assert response.status == "incomplete"
            assert response.status_details is not None
            assert response.status_details.reason == "max_output_tokens"
    # Eleven of twelve do not reach the limit.
    assert endings.count("completed") >= 0.5 * len(endings), endings


def test_what_is_spoken_is_what_is_written(
    exchanges: list[Exchange], recognizer: Recognizer
) -> None:
    said = []
    for exchange in exchanges:
        collector, answer = exchange.collector, exchange.response_id
        resampler = StreamResampler(collector.output_format.sample_rate_hz, 16_000)
        pcm = resampler.process(bytes(collector.response_audio[answer]), last=True)
        said.append((collector.response_text(answer), recognizer.transcribe(pcm).text))
    assert total_error_rate(said) <= MAX_ANSWER_WER, said
