"""The embedded model served turn by turn, to the `openai` package as it is."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from tests.e2e.hearing import may_be_spoken, understood
from tests.e2e.recordings import RATE_HZ, recording
from tests.e2e.server import Server, serve
from tests.entrypoints.turn.realtime_script import last, run, until

from omniduplex.audio.resample import StreamResampler
from omniduplex.models.local.asr import Recognizer

pytestmark = [pytest.mark.e2e, pytest.mark.local, pytest.mark.timeout(300)]

MODEL = "omniduplex/local"
TEXT = "Please come in. The kitchen is on the left, next to the garden."


@pytest.fixture(scope="module")
def turn_server(
    recognizer: Recognizer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    deploy = tmp_path_factory.mktemp("deploy") / "turn.yaml"
    deploy.write_text("session_mode: turn\n", "utf-8")
    with serve(MODEL, "--deploy-config", str(deploy)) as server:
        yield server


@pytest.fixture
def client(turn_server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{turn_server.http}/v1", api_key="any") as client:
        yield client


def pcm_of(file: bytes) -> tuple[bytes, int]:
    with wave.open(io.BytesIO(file)) as reader:
        return reader.readframes(reader.getnframes()), reader.getframerate()


def heard(recognizer: Recognizer, pcm: bytes, rate: int) -> str:
    at_16k = StreamResampler(rate, RATE_HZ).process(pcm, last=True)
    return recognizer.transcribe(at_16k).text


def ask_aloud(client: openai.OpenAI, path: Path) -> tuple[str, bytes]:
    """The transcript and the 24 kHz PCM of a streamed answer to a spoken question."""
    encoded = base64.b64encode(path.read_bytes()).decode()
    stream = client.chat.completions.create(
        model=MODEL,
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "pcm16"},
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "input_audio", "input_audio": {"data": encoded, "format": "wav"}}
                ],
            }
        ],
        max_completion_tokens=24,
        temperature=0,
        stream=True,
    )
    pieces = [choice.delta.audio for chunk in stream for choice in chunk.choices]
    words = "".join(piece.transcript or "" for piece in pieces if piece)
    pcm = b"".join(base64.b64decode(piece.data) for piece in pieces if piece and piece.data)
    return words, pcm


def test_a_spoken_question_is_answered_aloud(client: openai.OpenAI) -> None:
    words, pcm = ask_aloud(client, recording("capital").path)

    assert words.strip()
    assert may_be_spoken(words, pcm, 24_000)


@pytest.mark.timeout(240)
def test_a_realtime_conversation_goes_turn_by_turn(turn_server: Server) -> None:
    question = recording("capital")

    async def script(connection: AsyncRealtimeConnection) -> None:
        await connection.session.update(session={"type": "realtime", "max_output_tokens": 24})
        to_24k = StreamResampler(RATE_HZ, 24_000).process(question.pcm, last=True)
        await connection.input_audio_buffer.append(audio=base64.b64encode(to_24k).decode())
        await connection.input_audio_buffer.commit()
        await connection.response.create()

        events = await until(connection, "response.done")
        recognised = last(events, "conversation.item.input_audio_transcription.completed")
        assert understood(question.words, recognised["transcript"])
        deltas = [one for one in events if one["type"] == "response.output_audio.delta"]
        assert {(one["sample_rate_hz"], one["channels"]) for one in deltas} == {(24_000, 1)}
        pcm = b"".join(base64.b64decode(one["delta"]) for one in deltas)
        assert deltas[-1]["audio_duration_ms"] == len(pcm) // 2 * 1000 // 24_000
        words = last(events, "response.output_audio_transcript.done")["transcript"]
        assert words.strip()
        assert may_be_spoken(words, pcm, 24_000)

    run(turn_server.http, MODEL, script, duplex="0")


def test_duplex_mode_answers_the_same_call(local_server: Server) -> None:
    with openai.OpenAI(base_url=f"{local_server.http}/v1", api_key="any") as client:
        words, pcm = ask_aloud(client, recording("capital").path)

    assert words.strip()
    assert may_be_spoken(words, pcm, 24_000)


def test_what_was_spoken_is_understood(client: openai.OpenAI, recognizer: Recognizer) -> None:
    speech = client.audio.speech.create(
        model=MODEL, voice="alloy", input=TEXT, response_format="wav"
    ).content

    assert understood(TEXT, heard(recognizer, *pcm_of(speech)))


@pytest.mark.parametrize("name", ["capital", "kitchen", "human_disposed"])
def test_a_recording_is_transcribed(client: openai.OpenAI, name: str) -> None:
    question = recording(name)
    answer = client.audio.transcriptions.create(
        model=MODEL, file=question.path, response_format="verbose_json"
    )

    assert understood(question.words, answer.text)
    assert answer.duration == pytest.approx(len(question.pcm) / 2 / RATE_HZ, abs=0.001)
    assert answer.language == "en"


def test_a_text_question_streams_its_answer(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Tell me a long story about the sea."}],
        max_completion_tokens=24,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)

    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]).strip()
    assert len(chunks) > 2
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


def test_a_wish_that_only_others_can_fulfil_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.transcriptions.create(
            model=MODEL, file=recording("capital").path, language="nl"
        )
    assert (refused.value.code, refused.value.param) == ("unsupported", "language")
