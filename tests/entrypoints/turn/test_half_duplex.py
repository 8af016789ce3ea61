"""Half-duplex Realtime conversations: what a client says, shows and asks of the turn engine."""

from __future__ import annotations

from typing import Any

import pytest
from tests.entrypoints.turn.half_duplex import DONE, OFFICIAL, HalfDuplex, sound

from omniduplex.engine.turns import TurnChunk, TurnMessage, TurnToolCall
from omniduplex.entrypoints.openai.turn_realtime.items import MAX_INPUT_BYTES
from omniduplex.protocol.duplex import (
    AppendAudio,
    ClearInput,
    Commit,
    CreateResponse,
    DeleteItem,
    Dialect,
    DuplexCommand,
    Heartbeat,
    InputCommit,
    RetrieveItem,
    TruncateItem,
)

# --- the session -------------------------------------------------------------------------------


def test_nobody_but_the_client_ends_a_turn() -> None:
    created = HalfDuplex().one("session.created")["session"]
    assert created["audio"]["input"]["turn_detection"] is None
    beta = HalfDuplex(dialect=Dialect.BETA)
    assert beta.types() == ["session.created", "conversation.created"]


def test_an_update_is_shown_as_it_stands(talk: HalfDuplex) -> None:
    talk.send_json("session.update", session={"type": "realtime", "instructions": "Be brief."})
    assert talk.one("session.updated")["session"]["instructions"] == "Be brief."
    talk.writes("hello")
    talk.asks()
    assert talk.request().messages[0] == TurnMessage(role="system", content=("Be brief.",))


VAD = {"type": "server_vad"}


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"audio": {"input": {"turn_detection": VAD}}}, "session.audio.input.turn_detection"),
        ({"turn_detection": VAD}, "session.turn_detection"),
    ],
)
def test_turn_detection_cannot_be_switched_on(
    talk: HalfDuplex, session: dict[str, Any], param: str
) -> None:
    talk.send_json("session.update", session=session, event_id="e1")
    error = talk.error()
    assert (error["code"], error["event_id"]) == ("unsupported_turn_detection", "e1")
    assert error["param"] == param


def test_the_format_of_buffered_audio_stays(talk: HalfDuplex) -> None:
    ulaw = {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcmu"}}}}
    talk.send(AppendAudio(audio=sound(100)))
    talk.send_json("session.update", session=ulaw)
    assert talk.error()["code"] == "unsupported_audio_format"
    talk.send(ClearInput())
    talk.send_json("session.update", session=ulaw)
    assert talk.types() == ["input_audio_buffer.cleared", "session.updated"]


def test_half_an_answer_of_elsewhere_stays_one(talk: HalfDuplex) -> None:
    part = {"type": "output_text", "text": "Once upon"}
    item = {"id": "half", "role": "assistant", "status": "incomplete", "content": [part]}
    talk.send_json("conversation.item.create", item=item)
    assert talk.types() == ["conversation.item.added"]
    talk.send_json("conversation.item.delete", item_id="half")
    assert talk.types() == ["conversation.item.deleted"]


# --- a written turn ----------------------------------------------------------------------------


def test_a_written_turn_is_answered_in_the_apis_order(talk: HalfDuplex) -> None:
    talk.writes("hello")
    assert talk.types() == ["conversation.item.added", "conversation.item.done"]
    talk.asks(output_modalities=("text",))
    talk.answers(TurnChunk(text="good "), TurnChunk(text="day"), DONE)

    events = talk.shown()
    for event in events:
        OFFICIAL.validate_python(event)
    assert [event["type"] for event in events] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ]
    response = events[-2]["response"]
    assert (response["status"], response["usage"]["total_tokens"]) == ("completed", 5)
    assert response["output"][0]["content"] == [{"type": "output_text", "text": "good day"}]


def test_an_answer_is_part_of_the_next_question(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_modalities=("text",))
    talk.answers(TurnChunk(text="good day"), DONE)
    talk.writes("again")
    talk.asks(output_modalities=("text",))
    assert talk.request().messages == (
        TurnMessage(role="user", content=("hello",)),
        TurnMessage(role="assistant", content=("good day",)),
        TurnMessage(role="user", content=("again",)),
    )


def test_a_response_outside_the_conversation_leaves_no_trace(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_modalities=("text",), conversation="none", input=())
    assert talk.request().messages == ()
    talk.answers(TurnChunk(text="aside"), DONE)
    assert "conversation.item.added" not in talk.types()[2:]
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)


def test_an_answer_that_was_cut_by_its_limit_is_incomplete(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(max_output_tokens=1, output_modalities=("text",))
    assert talk.request().max_tokens == 1
    talk.answers(TurnChunk(text="good", finish_reason="length"))
    response = talk.one("response.done")["response"]
    assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"


# --- tools -------------------------------------------------------------------------------------


def test_a_tool_is_called_and_its_output_is_read(talk: HalfDuplex) -> None:
    tool = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
    talk.writes("look it up")
    talk.asks(tools=(tool,), tool_choice="required")
    assert (talk.request().tools, talk.request().tool_choice) == ((tool,), "required")
    call = TurnToolCall(call_id="c1", name="look_up", arguments='{"a": 1}')
    talk.answers(TurnChunk(tool_calls=(call,)), TurnChunk(finish_reason="tool_calls"))

    events = talk.shown()
    for event in events:
        OFFICIAL.validate_python(event)
    assert [event["type"] for event in events[2:]] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ]
    output = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    talk.send_json("conversation.item.create", item=output)
    talk.asks()
    assert talk.request().messages[1:] == (
        TurnMessage(role="assistant", tool_calls=(call,)),
        TurnMessage(role="tool", content=("42",), tool_call_id="c1"),
    )


@pytest.mark.parametrize(("name", "call_id"), [("", "c1"), ("look_up", "")])
def test_a_call_that_nobody_can_answer_is_none(talk: HalfDuplex, name: str, call_id: str) -> None:
    talk.writes("look it up")
    talk.asks(output_modalities=("text",))
    call = TurnToolCall(call_id=call_id, name=name, arguments="{}")
    talk.answers(TurnChunk(text="well", tool_calls=(call,)), DONE)
    (item,) = talk.one("response.done")["response"]["output"]
    assert item["type"] == "message"
    talk.asks()
    assert [message.tool_calls for message in talk.request().messages] == [(), ()]


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (Heartbeat(event_id="e1"), "unsupported"),
        (InputCommit(event_id="e1"), "unsupported"),
        (AppendAudio(audio=b"12", force_listen=True, event_id="e1"), "unsupported"),
        (Commit(response_create=True, event_id="e1"), "unsupported"),
        (Commit(event_id="e1"), "input_audio_buffer_commit_empty"),
        (AppendAudio(audio=bytes(MAX_INPUT_BYTES + 2), event_id="e1"), "input_backpressure"),
        (CreateResponse(event_id="e1"), "response_create_without_input"),
        (RetrieveItem(item_id="no", event_id="e1"), "item_retrieve_invalid_item_id"),
        (RetrieveItem(item_id="", event_id="e1"), "missing_item_id"),
        (DeleteItem(item_id="no", event_id="e1"), "item_not_found"),
        (TruncateItem(item_id="no", audio_end_ms=1, event_id="e1"), "item_not_found"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    talk: HalfDuplex, command: DuplexCommand, code: str
) -> None:
    talk.send(command)
    error = talk.error()
    assert (error["code"], error["event_id"]) == (code, "e1")


def test_one_answer_at_a_time(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.send(CreateResponse())
    assert talk.error()["code"] == "conversation_already_has_active_response"
