"""Transcriptions, asked for by the `openai` package as it is."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from starlette.testclient import TestClient
from tests.entrypoints.turn.sounds import MODEL, tone_wav

from omniduplex.audio.wav import wav_bytes
from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.openai.turn_app import create_turn_app

WORDS = "tone 440 Hz 1.2 s"
FILE = ("question.wav", tone_wav(1200))


def test_json_is_the_default(client: openai.OpenAI) -> None:
    answer = client.audio.transcriptions.create(model=MODEL, file=FILE)

    assert answer.text == WORDS
    assert answer.usage is not None
    assert answer.usage.type == "duration"
    assert answer.usage.seconds == 1.2


def test_text_is_plain(client: openai.OpenAI) -> None:
    answer = client.audio.transcriptions.create(model=MODEL, file=FILE, response_format="text")
    assert str(answer) == f"{WORDS}\n"


def test_verbose_json_tells_the_duration(client: openai.OpenAI) -> None:
    answer = client.audio.transcriptions.create(
        model=MODEL, file=FILE, response_format="verbose_json", language="nl"
    )
    assert (answer.text, answer.duration, answer.language) == (WORDS, 1.2, "nl")


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"response_format": "srt"}, "unsupported_format", "response_format"),
        ({"temperature": 0.5}, "unsupported_parameter", "temperature"),
        ({"stream": True}, "unsupported_parameter", "stream"),
        (
            {"timestamp_granularities": ["word"]},
            "unsupported_parameter",
            "timestamp_granularities[]",
        ),
        ({"file": ("a.wav", b"ID3 no wav")}, "invalid_audio", "file"),
        ({"file": ("a.wav", wav_bytes(b"\0\0" * 8, 3))}, "invalid_audio", "file"),
        (
            {"file": ("a.wav", wav_bytes(bytes(2 * 4_000 * 1_501), 4_000))},
            "audio_too_long",
            "file",
        ),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    client: openai.OpenAI, change: dict[str, Any], code: str, param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.transcriptions.create(**({"model": MODEL, "file": FILE} | change))
    assert (refused.value.code, refused.value.param) == (code, param)


def test_parts_that_are_missing_are_named(turn_omni: AsyncOmni) -> None:
    client = TestClient(create_turn_app(turn_omni))
    path = "/v1/audio/transcriptions"
    no_model = client.post(path, files={"file": FILE})
    no_file = client.post(path, data={"model": MODEL, "file": "a.wav"}, files={})
    no_form = client.post(path, json={})

    assert [r.json()["error"]["param"] for r in (no_model, no_file, no_form)] == [
        "model",
        "file",
        "model",
    ]
    assert {r.status_code for r in (no_model, no_file, no_form)} == {400}


def test_a_body_without_end_is_cut_off(
    turn_omni: AsyncOmni, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = "omniduplex.entrypoints.openai.turn_http.MAX_BODY_BYTES"
    monkeypatch.setattr(limit, 1000)
    client = TestClient(create_turn_app(turn_omni))
    response = client.post("/v1/audio/transcriptions", data={"model": MODEL}, files={"file": FILE})

    assert (response.status_code, response.json()["error"]["code"]) == (413, "request_too_large")
