"""Every client event that is refused: code, class, `param`, its own `event_id`; and life goes on.

A code of the table in `docs/errors.md` that no event of a client can draw from echo is tested where
it arises: limits and failures in tests/engine/duplex/session, resume in tests/entrypoints.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.caller import Caller, types

pytestmark = pytest.mark.e2e

INVALID = "invalid_request_error"
TEXT = [{"type": "input_text", "text": "Hi"}]

Refusal = tuple[str, dict[str, Any], str, str | None]

# What is sent, and code and `param` that it draws; the code in the duplex dialect's name.
REFUSALS: dict[str, Refusal] = {
    "unknown event": ("no.such.event", {}, "unknown_event", "type"),
    "update: a format": (
        "session.update",
        {"session": {"input_audio_format": "opus"}},
        "unsupported_audio_format",
        "session.input_audio_format",
    ),
    "update: a nested rate": (
        "session.update",
        {"session": {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 1}}}}},
        "unsupported_audio_format",
        "session.audio.input.format.rate",
    ),
    "update: turn detection": (
        "session.update",
        {"session": {"turn_detection": {"type": "ear"}}},
        "unsupported_turn_detection",
        "session.turn_detection.type",
    ),
    "update: a field of another turn detection": (
        "session.update",
        {"session": {"turn_detection": {"type": "semantic_vad", "threshold": 0.5}}},
        "unsupported_turn_detection",
        "session.turn_detection.threshold",
    ),
    "update: modalities": (
        "session.update",
        {"session": {"output_modalities": ["video"]}},
        "bad_event",
        "session.output_modalities",
    ),
    "update: a tool without a name": (
        "session.update",
        {"session": {"tools": [{"type": "function", "function": {"name": "f"}}]}},
        "bad_event",
        "session.tools[0].name",
    ),
    "update: a tool server": (
        "session.update",
        {"session": {"tools": [{"type": "mcp", "server_label": "x"}]}},
        "unsupported",
        "session.tools[0].type",
    ),
    "update: an integer beyond 64 bits": (
        "session.update",
        {"session": {"metadata": {"k": 10**30}}},
        "bad_event",
        "session.metadata.k",
    ),
    "update: tool choice": (
        "session.update",
        {"session": {"tool_choice": "any"}},
        "bad_event",
        "session.tool_choice",
    ),
    "update: tokens": (
        "session.update",
        {"session": {"max_output_tokens": 0}},
        "bad_event",
        "session.max_output_tokens",
    ),
    "update: temperature": (
        "session.update",
        {"session": {"temperature": -1}},
        "bad_event",
        "session.temperature",
    ),
    "update: a voice sample": (
        "session.update",
        {"session": {"ref_audio": "data:,"}},
        "ref_audio_update_unsupported",
        "session.ref_audio",
    ),
    "update: a transcription session": (
        "session.update",
        {"session": {"type": "transcription"}},
        "invalid_session_config",
        "session.type",
    ),
    "append: no base64": ("input_audio_buffer.append", {"audio": "?"}, "bad_audio", "audio"),
    "append: a format": (
        "input_audio_buffer.append",
        {"audio": "AAA=", "format": "opus"},
        "unsupported_audio_format",
        "format",
    ),
    "append: a rate": (
        "input_audio_buffer.append",
        {"audio": "AAA=", "sample_rate_hz": 1},
        "bad_event",
        "sample_rate_hz",
    ),
    "append: an overlap action": (
        "input_audio_buffer.append",
        {"audio": "AAAA", "overlap_action": "shout"},
        "bad_event",
        "overlap_action",
    ),
    "append: an overlap action by its other name": (
        "input_audio_buffer.append",
        {"audio": "AAAA", "overlap": "Barge_In"},
        "bad_event",
        "overlap",
    ),
    "append: video": (
        "input_audio_buffer.append",
        {"audio": "AAA=", "video_frames": ["AAAA"]},
        "invalid_input_modality",
        "video_frames",
    ),
    "commit: nothing": ("input_audio_buffer.commit", {}, "input_audio_buffer_empty", None),
    "input.commit: nothing": ("input.commit", {}, "input_audio_buffer_empty", None),
    "text": ("input.text.append", {"text": "Hi"}, "native_text_append_unsupported", None),
    "create: no item": ("conversation.item.create", {}, "bad_event", "item"),
    "create: a part of another role": (
        "conversation.item.create",
        {"item": {"role": "assistant", "content": TEXT}},
        "bad_event",
        "item.content[0].type",
    ),
    "create: no text": (
        "conversation.item.create",
        {"item": {"content": [{"type": "input_text"}]}},
        "bad_event",
        "item.content[0].text",
    ),
    "create: no audio": (
        "conversation.item.create",
        {"item": {"content": [{"type": "input_audio"}]}},
        "bad_event",
        "item.content[0].audio",
    ),
    "create: half a sample": (
        "conversation.item.create",
        {"item": {"content": [{"type": "input_audio", "audio": "AA=="}]}},
        "bad_audio",
        "item.content[0].audio",
    ),
    "create: an image": (
        "conversation.item.create",
        {"item": {"content": [{"type": "input_image", "image_url": "data:,"}]}},
        "unsupported",
        "item.content[0].type",
    ),
    "create: after nothing": (
        "conversation.item.create",
        {"item": {"content": TEXT}, "previous_item_id": "no"},
        "item_not_found",
        "previous_item_id",
    ),
    "create: an output of no call": (
        "conversation.item.create",
        {"item": {"type": "function_call_output", "call_id": "no", "output": "1"}},
        "invalid_function_call_output",
        "item.call_id",
    ),
    "create: a call without id": (
        "conversation.item.create",
        {"item": {"type": "function_call", "name": "f"}},
        "bad_event",
        "item.call_id",
    ),
    "create: a reference": (
        "conversation.item.create",
        {"item": {"type": "item_reference", "id": "no"}},
        "bad_event",
        "item.type",
    ),
    "delete: nothing": ("conversation.item.delete", {}, "missing_item_id", "item_id"),
    "delete: no such item": (
        "conversation.item.delete",
        {"item_id": "no"},
        "item_not_found",
        "item_id",
    ),
    "retrieve: nothing": ("conversation.item.retrieve", {}, "missing_item_id", "item_id"),
    "truncate: no such item": (
        "conversation.item.truncate",
        {"item_id": "no", "content_index": 0, "audio_end_ms": 1},
        "item_not_found",
        "item_id",
    ),
    "truncate: no time": (
        "conversation.item.truncate",
        {"item_id": "no", "content_index": 0},
        "bad_event",
        "audio_end_ms",
    ),
    "response: modalities": (
        "response.create",
        {"response": {"output_modalities": ["video"]}},
        "bad_event",
        "response.output_modalities",
    ),
    "response: conversation": (
        "response.create",
        {"response": {"conversation": "other"}},
        "bad_event",
        "response.conversation",
    ),
    "response: tokens": (
        "response.create",
        {"response": {"max_output_tokens": "many"}},
        "bad_event",
        "response.max_output_tokens",
    ),
    "response: temperature": (
        "response.create",
        {"response": {"temperature": -1}},
        "bad_event",
        "response.temperature",
    ),
    "response: a tool without a name": (
        "response.create",
        {"response": {"tools": [{"type": "function"}]}},
        "bad_event",
        "response.tools[0].name",
    ),
    "response: tool choice": (
        "response.create",
        {"response": {"tool_choice": "any"}},
        "bad_event",
        "response.tool_choice",
    ),
    "response: a format": (
        "response.create",
        {"response": {"output_audio_format": "opus"}},
        "unsupported_audio_format",
        "response.output_audio_format",
    ),
    "response: a reference to nothing": (
        "response.create",
        {"response": {"input": [{"type": "item_reference", "id": "no"}]}},
        "item_not_found",
        "response.input[0].id",
    ),
    "cancel: nothing": ("response.cancel", {}, "response_not_active", None),
    "cancel: no such response": (
        "response.cancel",
        {"response_id": "no"},
        "response_not_active",
        "response_id",
    ),
    "signal: no such": ("turn.signal", {"event": "sneeze"}, "bad_event", "event"),
    "ack: nothing to hear": (
        "playback.ack",
        {"played_ms": 1},
        "playback_item_not_found",
        "item_id",
    ),
    "ack: of another response": (
        "playback.ack",
        {"played_ms": 1, "response_id": "a", "item_id": "item_b"},
        "playback_item_mismatch",
        "item_id",
    ),
    "append: without audio": ("input_audio_buffer.append", {}, "bad_event", "audio"),
    "append: slices of a picture": (
        "input_audio_buffer.append",
        {"audio": "", "max_slice_nums": 5},
        "invalid_video_frames",
        "max_slice_nums",
    ),
    "create: an output that is no text": (
        "conversation.item.create",
        {"item": {"type": "function_call_output", "call_id": "c", "output": 5}},
        "invalid_function_call_output",
        "item.output",
    ),
    "event ack: the future": (
        "session.event_ack",
        {"server_event_seq": 10**9},
        "invalid_event_ack",
        "server_event_seq",
    ),
    "resume: too late": (
        "session.resume",
        {"session_id": "s", "resume_token": "t"},
        "unsupported_session_resume",
        None,
    ),
}
OPENAI_NAMES = {
    "response_not_active": "response_cancel_not_active",
    "input_audio_buffer_empty": "input_audio_buffer_commit_empty",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_names_its_reason_its_field_and_its_event(duplex: Caller, name: str) -> None:
    wire_type, fields, code, param = REFUSALS[name]
    error = duplex.refusal(wire_type, **fields)
    assert (error["type"], error["code"]) == (INVALID, code)
    assert error["message"]
    assert error["retryable"] is False
    shown = None if param is None else param.removeprefix("session.")
    assert error["param"] == shown
    duplex.still_answers()


@pytest.mark.parametrize("name", REFUSALS)
def test_a_stock_client_is_refused_in_its_own_words(openai: Caller, name: str) -> None:
    wire_type, fields, code, param = REFUSALS[name]
    error = openai.refusal(wire_type, **fields)
    assert set(error) == {"type", "code", "message", "param", "event_id"}
    assert (error["type"], error["code"]) == (INVALID, OPENAI_NAMES.get(code, code))
    assert error["param"] == param
    openai.still_answers()


def test_a_missing_item_has_the_apis_name_when_it_is_asked_for(openai: Caller) -> None:
    error = openai.refusal("conversation.item.retrieve", item_id="no")
    assert (error["code"], error["param"]) == ("item_retrieve_invalid_item_id", "item_id")


def test_an_item_id_is_used_once(any_dialect: Caller) -> None:
    any_dialect.writes("Hi", id="mine")
    item = {"type": "message", "role": "user", "id": "mine", "content": TEXT}
    error = any_dialect.refusal("conversation.item.create", item=item)
    assert (error["code"], error["param"]) == ("item_create_duplicate_item_id", "item.id")


def test_of_an_append_that_is_refused_nothing_is_heard(any_dialect: Caller) -> None:
    sound = any_dialect.sound(0.5)
    any_dialect.configure(turn_detection=None)
    any_dialect.refusal("input_audio_buffer.append", audio=sound, overlap_action="shout")
    empty = {"duplex": "input_audio_buffer_empty"}
    error = any_dialect.refusal("input_audio_buffer.commit")
    assert error["code"] == empty.get(any_dialect.dialect, "input_audio_buffer_commit_empty")


def test_a_model_has_one_name_in_the_contract_and_any_in_the_api(
    duplex: Caller, openai: Caller
) -> None:
    error = duplex.refusal("session.update", session={"model": "another"})
    assert (error["code"], error["param"]) == ("model_update_unsupported", "model")
    assert openai.configure(model="another")["model"] == "gpt-realtime"


def test_a_voice_is_kept_once_it_was_heard(any_dialect: Caller) -> None:
    any_dialect.writes("one")
    any_dialect.asks()
    error = any_dialect.refusal("session.update", session={"voice": "ash"})
    assert error["code"] == "voice_update_after_audio_unsupported"
    assert error["param"].endswith("voice")
    nested = {"audio": {"output": {"voice": "ash"}}}
    error = any_dialect.refusal("session.update", session=nested)
    assert error["param"].endswith("audio.output.voice")


def test_the_session_as_it_was_shown_may_be_sent_back_after_it_was_heard(
    any_dialect: Caller,
) -> None:
    any_dialect.writes("one")
    any_dialect.asks()
    shown = any_dialect.configure(instructions="Be brief.")
    again = {name: value for name, value in shown.items() if value is not None}
    now = any_dialect.configure(**again | {"instructions": "Rhyme."})
    assert now["instructions"] == "Rhyme."
    assert [now.get("voice"), now.get("audio")] == [shown.get("voice"), shown.get("audio")]


def test_a_call_has_one_output(any_dialect: Caller) -> None:
    any_dialect.puts({"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"})
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    any_dialect.puts(output)
    error = any_dialect.refusal("conversation.item.create", item=output)
    assert (error["code"], error["param"]) == ("invalid_function_call_output", "item.call_id")


@pytest.mark.parametrize(
    ("frame", "code"),
    [("{", "invalid_json"), ("[]", "bad_event"), ('{"type": 1}', "bad_event")],
)
def test_what_is_no_event_is_told_too(any_dialect: Caller, frame: str, code: str) -> None:
    any_dialect.talk.socket.send(frame)
    error = any_dialect.until("error")[-1]["error"]
    assert (error["type"], error["code"]) == (INVALID, code)
    any_dialect.still_answers()


@pytest.mark.parametrize(
    ("metadata", "param"),
    [({"k": 1}, "response.metadata.k"), ({str(n): "" for n in range(17)}, "response.metadata")],
    ids=["a number", "17 pairs"],
)
def test_metadata_of_the_api_are_few_texts(
    openai: Caller, metadata: dict[str, Any], param: str
) -> None:
    error = openai.refusal("response.create", response={"metadata": metadata})
    assert (error["code"], error["param"]) == ("bad_event", param)


def test_what_is_answered_leaves_no_other_trace(any_dialect: Caller) -> None:
    for wire_type, answer in [
        ("input_audio_buffer.clear", "input_audio_buffer.cleared"),
        ("output_audio_buffer.clear", "output_audio_buffer.cleared"),
        ("input.cancel", "input_audio_buffer.cleared"),
        ("barge_in", "input_audio_buffer.cleared"),
    ]:
        assert types(any_dialect.answer_to(wire_type)) == [answer]
