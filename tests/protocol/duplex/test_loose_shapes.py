"""What clients send for what they mean: other names, nulls at any depth, counts with a point."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from omniduplex.protocol.duplex import (
    CreateItem,
    CreateResponse,
    DuplexCommand,
    DuplexError,
    UpdateSession,
    apply_patch,
    decode_command,
    default_config,
)
from omniduplex.protocol.duplex.config import Dialect

AUDIO = base64.b64encode(b"\x01\x02").decode()
TEXT = {"type": "input_text", "text": "hello"}


def sent(kind: str, **fields: Any) -> DuplexCommand:
    return decode_command(json.dumps({"type": kind, **fields}))


def refused(kind: str, **fields: Any) -> DuplexError:
    with pytest.raises(DuplexError) as refusal:
        sent(kind, **fields)
    return refusal.value


# Other names


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"input_audio_format": "mp3"}, "unsupported_audio_format", "input_audio_format"),
        ({"input_audio_format": "wav"}, "unsupported_audio_format", "input_audio_format"),
        ({"input_audio_format": 7}, "unsupported_audio_format", "input_audio_format"),
        (
            {"input_audio_format": {"type": "audio/mp3"}},
            "unsupported_audio_format",
            "input_audio_format.type",
        ),
        ({"sample_rate": 1}, "bad_event", "sample_rate"),
        ({"sample_rate": "fast"}, "bad_event", "sample_rate"),
        ({"speech": 5}, "bad_event", "speech"),
        ({"text": 5}, "bad_event", "text"),
        ({"audio_duration_ms": "long"}, "bad_event", "audio_duration_ms"),
        ({"audio": None, "delta": "@"}, "bad_audio", "delta"),
    ],
)
def test_a_refusal_names_the_field_as_its_client_did(
    fields: dict[str, Any], code: str, param: str
) -> None:
    error = refused("input_audio_buffer.append", event_id="e1", **{"audio": AUDIO, **fields})
    assert (error.code, error.param, error.event_id) == (code, param, "e1")


def test_a_commit_is_refused_by_the_name_that_it_used() -> None:
    error = refused("input_audio_buffer.commit", create_response="yes")
    assert (error.code, error.param) == ("bad_event", "create_response")


# Nulls


@pytest.mark.parametrize(
    "session",
    [
        {"audio": None},
        {"audio": {"input": None, "output": None}},
        {"audio": {"input": {"format": None, "sample_rate_hz": None}}},
        {"audio": {"input": {"format": {"type": "audio/pcm", "rate": None}}}},
        {"sample_rate_hz": None, "sample_rate": None, "input_audio_format": None},
        {"output_audio_format": None, "response_format": None, "type": None},
    ],
)
def test_a_null_that_a_session_has_no_use_for_is_absent(session: dict[str, Any]) -> None:
    command = sent("session.update", session={"temperature": 0.5, **session})
    assert isinstance(command, UpdateSession)
    config = default_config("m", Dialect.DUPLEX)

    changed = apply_patch(config, command.session)
    assert changed.temperature == 0.5
    assert (changed.input_format, changed.output_format) == (
        config.input_format,
        config.output_format,
    )


def test_a_null_beside_an_absent_one_still_clears_what_can_be_cleared() -> None:
    audio = {"input": {"sample_rate_hz": None, "turn_detection": None}, "output": {"voice": None}}
    command = sent("session.update", session={"audio": audio})
    assert isinstance(command, UpdateSession)
    config = default_config("m", Dialect.OPENAI)
    assert config.turn_detection is not None

    assert apply_patch(config, command.session).turn_detection is None


def test_a_flat_field_counts_where_its_nested_one_is_null() -> None:
    session = {"audio": {"input": {"format": None}}, "input_audio_format": "g711_ulaw"}
    command = sent("session.update", session=session)
    assert isinstance(command, UpdateSession)
    config = apply_patch(default_config("m", Dialect.DUPLEX), command.session)
    assert config.input_format.encoding == "g711_ulaw"


@pytest.mark.parametrize(
    "item",
    [
        {"content": [{**TEXT, "audio": None, "image_url": None, "detail": None}]},
        {"content": [{**TEXT, "is_speech": None}], "role": None, "type": None},
    ],
)
def test_a_null_in_an_item_is_absent(item: dict[str, Any]) -> None:
    assert sent("conversation.item.create", item=item) == sent(
        "conversation.item.create", item={"content": [TEXT]}
    )


def test_no_content_is_none() -> None:
    command = sent("conversation.item.create", item={"role": "assistant", "content": None})
    assert isinstance(command, CreateItem)
    assert command.item.content == ()


def test_a_transcript_that_is_null_is_one_that_is_not_known() -> None:
    part = {"type": "input_audio", "audio": AUDIO, "transcript": None, "text": None}
    command = sent("conversation.item.create", item={"content": [part]})
    assert isinstance(command, CreateItem)
    assert command.item.content[0].transcript is None


def test_what_a_client_shapes_as_it_likes_keeps_its_nulls_and_its_floats() -> None:
    own = {"nothing": None, "half": {"one": 1.0}}
    command = sent("session.update", session={"audio": None, "metadata": own})
    assert isinstance(command, UpdateSession)
    assert json.dumps(command.session.metadata) == json.dumps(own)


# Counts


@pytest.mark.parametrize("name", ["max_output_tokens", "max_response_output_tokens", "max_tokens"])
def test_a_whole_number_of_tokens_may_have_a_point(name: str) -> None:
    command = sent("session.update", session={name: 256.0})
    assert isinstance(command, UpdateSession)
    assert (
        apply_patch(default_config("m", Dialect.DUPLEX), command.session).max_output_tokens == 256
    )

    asked = sent("response.create", response={name: 256.0})
    assert isinstance(asked, CreateResponse)
    assert asked.response
    assert getattr(asked.response, name) == 256


@pytest.mark.parametrize("tokens", [256.5, 1e300])
def test_half_a_token_is_refused(tokens: float) -> None:
    error = refused("session.update", session={"max_output_tokens": tokens})
    assert (error.code, error.param) == ("bad_event", "session.max_output_tokens")
