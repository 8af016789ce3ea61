"""Function calls from end to end: interop, MUST 27."""

from __future__ import annotations

import pytest
from tests.contract.caller import LOOK_UP, SET_ALARM, Caller, one, types

pytestmark = pytest.mark.e2e


def test_a_tools_output_is_answered_when_that_is_asked(any_dialect: Caller) -> None:
    any_dialect.writes("call look_up noon")
    (call,) = any_dialect.asks(tools=[LOOK_UP])[-2]["response"]["output"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "it is late"}
    shown = any_dialect.puts(output)
    shown += any_dialect.until_now()
    assert not any(name.startswith("response.created") for name in types(shown))

    done = any_dialect.asks(tools=[LOOK_UP])[-2]["response"]
    (part,) = done["output"][0]["content"]
    assert part["transcript"] == "Tool said it is late"


def test_two_calls_are_two_items_of_one_answer(any_dialect: Caller) -> None:
    any_dialect.writes("call look_up noon call set_alarm ten")
    events = any_dialect.asks(tools=[LOOK_UP, SET_ALARM])
    added = [event for event in events if event["type"] == "response.output_item.added"]
    assert [event["output_index"] for event in added] == [0, 1]
    assert [event["item"]["name"] for event in added] == ["look_up", "set_alarm"]
    output = one(events, "response.done")["response"]["output"]
    assert [item["type"] for item in output] == ["function_call"] * 2
    assert len({item["call_id"] for item in output}) == 2


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("none", None),
        ("auto", "look_up"),
        ("required", "look_up"),
        ({"type": "function", "name": "set_alarm"}, "set_alarm"),
    ],
    ids=["none", "auto", "required", "function"],
)
def test_the_choice_decides_what_is_called(
    any_dialect: Caller, choice: object, called: str | None
) -> None:
    any_dialect.writes("call look_up noon")
    output = any_dialect.asks(tools=[LOOK_UP, SET_ALARM], tool_choice=choice)[-2]["response"]
    names = [item.get("name") for item in output["output"]]
    assert names == [called]


def test_tools_of_the_session_are_called_after_speech(openai: Caller) -> None:
    openai.configure(tools=[LOOK_UP], tool_choice="required")
    openai.says()
    openai.send("input_audio_buffer.commit")
    openai.until("conversation.item.input_audio_transcription.completed")
    (call,) = openai.asks()[-2]["response"]["output"]
    assert (call["name"], call["arguments"]) == ("look_up", '{"text":"tone 300 Hz 1.0 s"}')
