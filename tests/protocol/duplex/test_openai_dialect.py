"""What the OpenAI dialect shows, as the official models judge it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.protocol.duplex.rendering import OFFICIAL, TIER_3, named, rendered
from tests.protocol.duplex.samples import CANCELLED, CREATED, samples

from omniduplex.protocol.duplex import (
    ContentPart,
    ConversationCreated,
    Dialect,
    DuplexError,
    DuplexEvent,
    DuplexResponse,
    Item,
    ItemAdded,
    ItemCreated,
    OutputCleared,
    ResponseDone,
    StatusDetails,
    StatusError,
    error_event,
    project,
)

OPENAI_SAMPLES = samples(Dialect.OPENAI)


def openai(event: DuplexEvent) -> dict[str, Any]:
    return rendered(event, Dialect.OPENAI)


def nulls(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [hit for key, inner in value.items() for hit in nulls(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [hit for inner in value for hit in nulls(inner, f"{path}[]")]
    return [path] if value is None else []


@pytest.mark.parametrize("event", OPENAI_SAMPLES, ids=named)
def test_the_official_models_take_whatever_the_openai_dialect_shows(event: DuplexEvent) -> None:
    if isinstance(event, (*TIER_3, ItemCreated, ConversationCreated)):
        assert project(event, Dialect.OPENAI) is None
        return
    message = openai(event)
    parsed = OFFICIAL.validate_python(message)
    assert parsed.type == message["type"]
    # Nothing of ours but the sequence number hides behind a lenient model.
    extras = {path for path in unknown_keys(parsed) if not path.endswith("server_event_seq")}
    assert extras <= {".session.id", ".session.object"}


def unknown_keys(model: Any, path: str = "") -> list[str]:
    """Return the paths of all keys that a parsed official model has no field for."""
    if isinstance(model, list):
        return [hit for inner in model for hit in unknown_keys(inner, f"{path}[]")]
    if not hasattr(model, "model_fields_set"):
        return []
    own = [f"{path}.{key}" for key in model.model_extra or {}]
    fields = type(model).model_fields
    return own + [
        hit for name in fields for hit in unknown_keys(getattr(model, name), f"{path}.{name}")
    ]


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("response", "status"), "listening"),
        (("response", "status_details", "reason"), "barge_in"),
        (("response", "output", 0, "status"), "cancelled"),
        (("response", "metadata", "trace"), {"nested": "object"}),
    ],
    ids=str,
)
def test_the_official_models_are_strict_enough_to_mean_something(
    path: tuple[Any, ...], wrong: Any
) -> None:
    message = openai(CANCELLED)
    inner = message
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    with pytest.raises(ValidationError):
        OFFICIAL.validate_python(message)


@pytest.mark.parametrize("event", OPENAI_SAMPLES, ids=named)
def test_items_and_parts_have_no_nulls_but_a_transcript(event: DuplexEvent) -> None:
    if project(event, Dialect.OPENAI) is None:
        return
    message = openai(event)
    for key in ("item", "part", "response"):
        for path in nulls(message.get(key, {})):
            assert path in (".metadata", ".usage", ".status_details", ".content[].transcript")


def test_the_openai_session_is_the_ga_object() -> None:
    session = openai(OPENAI_SAMPLES[0])["session"]
    assert set(session) == {
        "id", "object", "type", "model", "output_modalities", "instructions", "audio", "tools",
        "tool_choice", "max_output_tokens", "tracing", "truncation", "prompt", "include",
    }  # fmt: skip
    assert session["instructions"] == ""
    assert session["audio"]["output"]["voice"] == "alloy"
    for side in ("input", "output"):
        assert session["audio"][side]["format"] == {"type": "audio/pcm", "rate": 24000}
    assert session["audio"]["input"]["turn_detection"] == {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "create_response": True,
        "interrupt_response": True,
    }


def test_the_openai_dialect_gives_metadata_back_and_only_that() -> None:
    for event in (CREATED, CANCELLED):
        response = openai(event)["response"]
        assert response["metadata"] == {"trace": "turn-3"}
        assert response["output_modalities"] == ["audio"]
        assert "facts" not in response
        assert "modalities" not in response
    assert "response_id" not in openai(CREATED)
    assert openai(CANCELLED)["response"]["usage"]["output_tokens"] == 2


def test_metadata_nobody_gave_is_null() -> None:
    event = ResponseDone(response_id="r", response=DuplexResponse(id="r", status="completed"))
    assert openai(event)["response"]["metadata"] is None


def done(status: Any, details: StatusDetails | None) -> dict[str, Any]:
    response = DuplexResponse(id="r", status=status, status_details=details)
    message = openai(ResponseDone(response_id="r", response=response))
    OFFICIAL.validate_python(message)
    shown: dict[str, Any] = message["response"]
    return shown


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("barge_in", "turn_detected"),
        ("output_audio_buffer_clear", "client_cancelled"),
        ("turn_detected", "turn_detected"),
        ("client_cancelled", "client_cancelled"),
    ],
)
def test_a_cancellation_has_an_official_reason(ours: str, theirs: str) -> None:
    shown = done("cancelled", StatusDetails(type="cancelled", reason=ours))
    assert shown["status_details"] == {"type": "cancelled", "reason": theirs}


@pytest.mark.parametrize("status", ["cancelled", "completed", "incomplete"])
def test_a_reason_the_api_does_not_know_is_left_out(status: str) -> None:
    shown = done(status, StatusDetails(type=status, reason="new_response"))
    assert shown["status_details"] == {"type": status}


def test_an_incomplete_response_keeps_its_reason() -> None:
    shown = done("incomplete", StatusDetails(type="incomplete", reason="max_output_tokens"))
    assert shown["status_details"]["reason"] == "max_output_tokens"


def test_a_failure_is_told_as_an_error() -> None:
    shown = done("failed", StatusDetails(type="failed", reason="output_backpressure"))
    error = {"type": "rate_limit_error", "code": "output_backpressure"}
    assert shown["status_details"] == {"type": "failed", "error": error}
    unknown = done("failed", StatusDetails(type="failed", reason="gremlins"))
    assert unknown["status_details"]["error"] == {"type": "server_error", "code": "gremlins"}
    own = StatusError(type="server_error", code="engine_error")
    kept = done("failed", StatusDetails(type="failed", error=own))
    assert kept["status_details"]["error"]["code"] == "engine_error"


def test_a_cancelled_item_is_incomplete_and_keeps_what_was_heard() -> None:
    item = openai(CANCELLED)["response"]["output"][0]
    assert item["status"] == "incomplete"
    assert item["content"] == [{"type": "output_audio", "transcript": "It is sunny"}]


def test_user_audio_always_has_a_transcript_key() -> None:
    item = Item(id="i", role="user", content=(ContentPart(type="input_audio", is_speech=False),))
    message = openai(ItemAdded(item=item))
    assert message["item"]["content"] == [{"type": "input_audio", "transcript": None}]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            DuplexError("response_not_active", "No response is active."),
            "response_cancel_not_active",
            "Cancellation failed: No response is active.",
        ),
        (
            DuplexError("response_not_active", "Cancellation failed: nothing to do."),
            "response_cancel_not_active",
            "Cancellation failed: nothing to do.",
        ),
        (
            DuplexError("response_already_active", "Busy."),
            "conversation_already_has_active_response",
            "Busy.",
        ),
        (
            DuplexError("input_audio_buffer_empty", "Empty."),
            "input_audio_buffer_commit_empty",
            "Empty.",
        ),
        (
            DuplexError("item_retrieve_invalid_item_id", "No item x."),
            "item_retrieve_invalid_item_id",
            "No item x.",
        ),
        (
            DuplexError("item_not_found", "No item x."),
            "item_not_found",
            "No item x.",
        ),
        (
            DuplexError("item_create_duplicate_item_id", "Taken."),
            "item_create_duplicate_item_id",
            "Taken.",
        ),
    ],
)
def test_errors_have_the_apis_names(error: DuplexError, code: str, message: str) -> None:
    shown = openai(error_event(error))["error"]
    assert set(shown) == {"type", "code", "message", "param", "event_id"}
    assert (shown["code"], shown["message"]) == (code, message)


def test_an_official_error_names_the_whole_path() -> None:
    assert openai(OPENAI_SAMPLES[-1])["error"]["param"] == "session.turn_detection"


def test_nothing_to_clear_has_an_empty_name() -> None:
    message = openai(OutputCleared(response_id=None))
    assert OFFICIAL.validate_python(message).response_id == ""
