"""Chat completions, asked for by the `openai` package as it is."""

from __future__ import annotations

import base64
import io
import wave
from typing import Any

import msgspec
import openai
import pytest
from openai.types.chat import ChatCompletionChunk, ChatCompletionToolParam
from starlette.testclient import TestClient
from tests.entrypoints.turn.sounds import MODEL, tone, tone_wav

from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.openai.turn_app import create_turn_app

WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


def input_audio(data: bytes, audio_format: str) -> Any:
    encoded = {"data": base64.b64encode(data).decode(), "format": audio_format}
    return {"role": "user", "content": [{"type": "input_audio", "input_audio": encoded}]}


def pcm_of(chunks: list[ChatCompletionChunk]) -> bytes:
    """All sound of a stream."""
    found = b""
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.delta.audio and choice.delta.audio.data:
                found += base64.b64decode(choice.delta.audio.data)
    return found


def metadata(choice: Any) -> Any:
    return (choice.model_extra or {}).get("audio_metadata")


def test_text_is_answered_with_text(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "good morning"}]
    )

    choice = completion.choices[0]
    assert (completion.object, completion.model) == ("chat.completion", MODEL)
    assert (choice.message.content, choice.finish_reason) == ("You said good morning", "stop")
    assert choice.message.audio is None
    assert metadata(choice) is None
    assert completion.usage is not None
    assert completion.usage.total_tokens == 6


def test_text_streams(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "good morning"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    *answer, last = chunks
    assert "".join(c.choices[0].delta.content or "" for c in answer) == "You said good morning"
    assert [c.choices[0].delta.role for c in answer[:2]] == ["assistant", None]
    assert [c.choices[0].finish_reason for c in answer[-2:]] == [None, "stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert last.choices == []
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (2, 4)


@pytest.mark.parametrize(("data", "audio_format"), [(tone_wav(1200), "wav"), (tone(1200), "pcm16")])
def test_a_spoken_question_is_answered_aloud(
    client: openai.OpenAI, data: bytes, audio_format: str
) -> None:
    completion = client.chat.completions.create(
        model=MODEL,
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
        messages=[input_audio(data, audio_format)],
    )

    choice = completion.choices[0]
    audio = choice.message.audio
    assert audio is not None
    assert audio.transcript == "You said tone 440 Hz 1.2 s"
    assert audio.expires_at > completion.created
    assert choice.message.content is None
    with wave.open(io.BytesIO(base64.b64decode(audio.data))) as reader:
        assert metadata(choice) == {
            "format": "wav",
            "sample_rate_hz": reader.getframerate(),
            "frame_count": reader.getnframes(),
            "channels": reader.getnchannels(),
        }
        assert reader.getnframes() == 1.2 * reader.getframerate()


def test_sound_streams_and_each_piece_says_what_it_is(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "pcm16"},
            messages=[input_audio(tone_wav(1200), "wav")],
            stream=True,
        )
    )

    choices = [chunk.choices[0] for chunk in chunks]
    audio = [choice.delta.audio for choice in choices if choice.delta.audio]
    assert "".join(piece.transcript or "" for piece in audio) == "You said tone 440 Hz 1.2 s"
    assert len({piece.id for piece in audio}) == 1
    assert audio[-1].expires_at is not None
    assert all(choice.delta.content is None for choice in choices)
    for choice in choices:
        if choice.delta.audio and choice.delta.audio.data:
            frames = len(base64.b64decode(choice.delta.audio.data)) // 2
            told = {"format": "pcm", "sample_rate_hz": 24_000, "frame_count": frames}
            assert metadata(choice) == {**told, "channels": 1}
        else:
            assert metadata(choice) is None
    assert len(pcm_of(chunks)) == 2 * 24 * 1200


def test_a_streamed_wav_is_a_wav(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "wav"},
            messages=[input_audio(tone_wav(1200), "wav")],
            stream=True,
        )
    )

    with wave.open(io.BytesIO(pcm_of(chunks))) as reader:
        pcm = reader.readframes(reader.getnframes())
        told = [metadata(choice) for chunk in chunks for choice in chunk.choices]
        assert sum(one["frame_count"] for one in told if one) == len(pcm) // 2
        assert {one["sample_rate_hz"] for one in told if one} == {reader.getframerate()}


def test_an_earlier_spoken_answer_is_named_by_its_id(
    client: openai.OpenAI, turn_omni: AsyncOmni
) -> None:
    first = client.chat.completions.create(
        model=MODEL,
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
        messages=[{"role": "user", "content": "one"}],
    )
    audio = first.choices[0].message.audio
    assert audio is not None
    second = client.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "user", "content": "one"},
            {"role": "assistant", "audio": {"id": audio.id}},
            {"role": "user", "content": "two"},
        ],
    )

    assert second.usage is not None
    assert second.usage.prompt_tokens == len(["one", "You", "said", "one", "two"])
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "assistant", "audio": {"id": "audio_x"}}]
        )
    assert (refused.value.code, refused.value.param) == ("audio_not_found", "messages[0].audio.id")


def test_tools_are_called_and_their_results_are_told(client: openai.OpenAI) -> None:
    call_it: Any = {"role": "user", "content": "call weather in Oslo"}
    completion = client.chat.completions.create(model=MODEL, messages=[call_it], tools=[WEATHER])

    choice = completion.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("weather", '{"text":"in Oslo"}')

    told = client.chat.completions.create(
        model=MODEL,
        messages=[
            call_it,
            choice.message.model_dump(exclude_none=True),  # type: ignore[list-item]
            {"role": "tool", "tool_call_id": call.id, "content": "4 degrees"},
        ],
        tools=[WEATHER],
    )
    assert told.choices[0].message.content == "Tool said 4 degrees"


def test_tool_calls_stream(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model=MODEL, messages=[{"role": "user", "content": "call weather"}], tools=[WEATHER]
    ) as stream:
        final = stream.get_final_completion()

    calls = final.choices[0].message.tool_calls
    assert calls is not None
    assert [(call.function.name, call.function.arguments) for call in calls] == [("weather", "{}")]
    assert final.choices[0].finish_reason == "tool_calls"


def test_an_answer_can_be_cut_short(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "a b c"}], max_completion_tokens=3
    )
    assert completion.choices[0].message.content == "You said a"
    assert completion.choices[0].finish_reason == "length"


MESSAGES = [{"role": "user", "content": "hello"}]
AUDIO = {"voice": "alloy", "format": "wav"}


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"n": 2}, "unsupported_parameter", "n"),
        ({"logprobs": True}, "unsupported_parameter", "logprobs"),
        ({"stop": ["\n"]}, "unsupported_parameter", "stop"),
        ({"response_format": {"type": "json_object"}}, "unsupported_parameter", "response_format"),
        ({"modalities": ["audio"]}, "missing_required_parameter", "audio"),
        (
            {"modalities": ["text", "audio"], "audio": {**AUDIO, "format": "mp3"}},
            "unsupported_format",
            "audio.format",
        ),
        ({"temperature": 3}, "invalid_value", "temperature"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"max_tokens": 10**30}, "invalid_value", "max_tokens"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": [{"role": "king"}]}, "invalid_value", "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "invalid_value",
            "messages[0].content[0].type",
        ),
        (
            {"messages": [input_audio(b"RIFF", "wav")]},
            "invalid_audio",
            "messages[0].content[0].input_audio.data",
        ),
        (
            {"messages": [input_audio(b"\0\0\0", "pcm16")]},
            "invalid_audio",
            "messages[0].content[0].input_audio.data",
        ),
        (
            {"messages": [input_audio(b"ID3", "mp3")]},
            "unsupported_format",
            "messages[0].content[0].input_audio.format",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    turn_omni: AsyncOmni, change: dict[str, Any], code: str, param: str
) -> None:
    client = TestClient(create_turn_app(turn_omni))
    body = {"model": MODEL, "messages": MESSAGES} | change

    response = client.post("/v1/chat/completions", json=body)

    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, code, param)
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_what_asks_for_nothing_special_is_taken(turn_omni: AsyncOmni) -> None:
    client = TestClient(create_turn_app(turn_omni))
    body = {
        "model": MODEL,
        "messages": MESSAGES,
        "n": 1,
        "top_p": 1.0,
        "stop": None,
        "logprobs": False,
        "response_format": {"type": "text"},
        "user": "somebody",
        "some_new_field": 1,
    }
    assert client.post("/v1/chat/completions", json=body).status_code == 200


def test_bodies_that_are_none_and_models_that_are_not_here(turn_omni: AsyncOmni) -> None:
    client = TestClient(create_turn_app(turn_omni))
    broken = client.post("/v1/chat/completions", content=b"{")
    other = client.post("/v1/chat/completions", json={"model": "x", "messages": MESSAGES})

    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "invalid_json")
    assert (other.status_code, other.json()["error"]["code"]) == (404, "model_not_found")


def test_the_objects_have_the_fields_that_the_api_names(turn_omni: AsyncOmni) -> None:
    client = TestClient(create_turn_app(turn_omni, clock=lambda: 1_700_000_000.5))
    body = {"model": MODEL, "messages": MESSAGES}
    completion = msgspec.json.decode(client.post("/v1/chat/completions", json=body).content)

    assert completion["id"].startswith("chatcmpl-")
    del completion["id"]
    assert completion == {
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "You said hello", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4},
    }
