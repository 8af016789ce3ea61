"""The beta dialect, judged by the models that the `openai` package keeps of the beta."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.beta.realtime import RealtimeServerEvent
from openai.types.beta.realtime.session import Session
from pydantic import TypeAdapter
from tests.protocol.duplex.samples import CANCELLED, samples

from omniduplex.protocol.duplex import (
    ConversationCreated,
    Dialect,
    DuplexEvent,
    ItemAdded,
    ItemDone,
    SessionPatch,
    TimeoutTriggered,
    apply_patch,
    default_config,
    encode_event,
    project,
)

BETA: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
SAMPLES = samples(Dialect.BETA)
SINCE_THE_BETA = (ItemAdded, ItemDone, TimeoutTriggered)
RENAMED = {
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
}


def named(event: DuplexEvent) -> str:
    return type(event).__name__


def tag(event: DuplexEvent) -> str:
    return str(type(event).__struct_config__.tag)


def beta(event: DuplexEvent) -> dict[str, Any] | None:
    projected = project(event, Dialect.BETA)
    if projected is None:
        return None
    message: dict[str, Any] = json.loads(encode_event(projected, event_id="event_1", seq=1))
    return message


@pytest.mark.parametrize("event", SAMPLES, ids=named)
def test_an_event_has_its_beta_name_or_none(event: DuplexEvent) -> None:
    message = beta(event)
    openai = project(event, Dialect.OPENAI)

    if message is not None:
        assert message["type"] == RENAMED.get(tag(event), tag(event))
        assert message["event_id"] == "event_1"
        assert message["server_event_seq"] == 1
    elif not isinstance(event, SINCE_THE_BETA):
        assert openai is None


def test_the_beta_has_a_name_of_its_own_for_these() -> None:
    shown = [message["type"] for event in SAMPLES if (message := beta(event)) is not None]

    assert set(RENAMED.values()) <= set(shown)
    assert not set(RENAMED) & set(shown)
    assert "conversation.created" in shown
    assert "conversation.item.created" in shown


@pytest.mark.parametrize("event", SAMPLES, ids=named)
def test_the_models_of_the_beta_take_every_event(event: DuplexEvent) -> None:
    message = beta(event)
    if message is not None:
        assert BETA.validate_python(message).type == message["type"]


@pytest.mark.parametrize("event", [CANCELLED, *SAMPLES], ids=named)
def test_items_hold_text_and_audio(event: DuplexEvent) -> None:
    text = json.dumps(beta(event))

    assert '"output_audio"' not in text
    assert '"output_text"' not in text


def test_the_conversation_follows_the_session() -> None:
    kinds = [type(event) for event in SAMPLES]
    message = beta(SAMPLES[kinds.index(ConversationCreated)])

    assert message is not None
    assert message["conversation"] == {"id": "conv_1", "object": "realtime.conversation"}


def test_the_session_is_flat() -> None:
    message = beta(SAMPLES[0])

    assert message is not None
    session = message["session"]
    Session.model_validate(session)
    assert session["modalities"] == ["audio", "text"]
    assert (session["input_audio_format"], session["output_audio_format"]) == ("pcm16", "pcm16")
    assert session["voice"] == "alloy"
    assert session["max_response_output_tokens"] == "inf"
    assert session["turn_detection"]["type"] == "server_vad"
    assert not {"audio", "type", "output_modalities", "capabilities"} & set(session)


def test_the_beta_starts_as_the_openai_dialect_does_and_writes_too() -> None:
    beta, openai = default_config("m", Dialect.BETA), default_config("m", Dialect.OPENAI)

    assert beta.input_format == openai.input_format
    assert beta.turn_detection == openai.turn_detection
    assert beta.modalities == ("audio", "text")


def test_a_flat_session_is_taken() -> None:
    before = default_config("m", Dialect.BETA)
    patch = SessionPatch(
        modalities=("text",),
        voice="verse",
        input_audio_format="g711_ulaw",
        output_audio_format="g711_alaw",
        max_response_output_tokens=100,
        turn_detection=None,
    )
    config = apply_patch(before, patch)

    assert config.modalities == ("text",)
    assert (config.input_format.encoding, config.output_format.encoding) == (
        "g711_ulaw",
        "g711_alaw",
    )
    assert config.input_format.sample_rate_hz == config.output_format.sample_rate_hz == 8000
    assert (config.voice, config.max_output_tokens) == ("verse", 100)
    assert config.turn_detection is None
