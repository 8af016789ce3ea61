"""Speech, asked for by the `openai` package as it is."""

from __future__ import annotations

import io
import wave
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
import openai
import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.turn.sounds import MODEL

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.turn_plugin import TurnFeatures
from omniduplex.engine.turns import SpeechRequest, TurnChunk, TurnRequest
from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.openai.turn_app import create_turn_app

TEXT = "one two three"
# Echo needs 400 ms for a word.
MS = 1200


def test_a_text_becomes_a_wav(client: openai.OpenAI) -> None:
    response = client.audio.speech.create(
        model=MODEL, voice="alloy", input=TEXT, response_format="wav"
    )

    assert response.response.headers["content-type"] == "audio/wav"
    with wave.open(io.BytesIO(response.content)) as reader:
        assert (reader.getnchannels(), reader.getsampwidth()) == (1, 2)
        pcm = reader.readframes(reader.getnframes())
        assert len(pcm) == 2 * reader.getframerate() * MS // 1000
        assert max(pcm) > 0


def test_headerless_pcm_is_at_24_khz(client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model=MODEL, voice="alloy", input=TEXT, response_format="pcm"
    ) as response:
        assert response.headers["content-type"] == "audio/pcm"
        assert "content-length" not in response.headers
        pcm = b"".join(response.iter_bytes())
    assert len(pcm) == 2 * 24 * MS


def test_a_wav_is_the_default(client: openai.OpenAI) -> None:
    assert client.audio.speech.create(model=MODEL, voice="alloy", input=TEXT).content[:4] == b"RIFF"


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"response_format": "mp3"}, "unsupported_format", "response_format"),
        ({"speed": 1.5}, "unsupported_parameter", "speed"),
        ({"speed": 0.2}, "invalid_value", "speed"),
        ({"speed": 4.1}, "invalid_value", "speed"),
        ({"instructions": "whisper"}, "unsupported_parameter", "instructions"),
        ({"stream_format": "sse"}, "unsupported_parameter", "stream_format"),
        ({"input": ""}, "invalid_value", "input"),
        ({"input": "a" * 4097}, "invalid_value", "input"),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    client: openai.OpenAI, change: dict[str, Any], code: str, param: str
) -> None:
    body = {"model": MODEL, "voice": "alloy", "input": TEXT} | change
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(**body)
    assert (refused.value.code, refused.value.param) == (code, param)


class HastyOmni(AsyncOmni):
    """One whose model can speak faster; what it is asked is the test's to see."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        self.asked: list[TurnRequest] = []
        super().__init__(pipeline=pipeline)

    @property
    def turn_features(self) -> TurnFeatures:
        return msgspec.structs.replace(super().turn_features, supports_speed=True)

    async def generate(self, request: TurnRequest) -> AsyncGenerator[TurnChunk, None]:
        self.asked.append(request)
        if isinstance(request, SpeechRequest):
            request = msgspec.structs.replace(request, speed=1.0)  # as fast as echo can
        async with aclosing(super().generate(request)) as chunks:
            async for chunk in chunks:
                yield chunk


def test_a_model_that_can_is_asked_to_speak_faster(
    echo: PipelineConfig, serve_app: ServeApp
) -> None:
    with HastyOmni(echo) as omni:
        base = serve_app(create_turn_app(omni))
        with openai.OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0) as client:
            for speed in (1.5, 1.0):
                client.audio.speech.create(model=MODEL, voice="alloy", input=TEXT, speed=speed)
        speeds = [asked.speed for asked in omni.asked if isinstance(asked, SpeechRequest)]
        assert speeds == [1.5, 1.0]
