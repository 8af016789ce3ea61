"""What a response puts out stands in its output, and in the conversation if that is wanted."""

from __future__ import annotations

import pytest
from msgspec import structs

from omniduplex.engine.conversation.history import History, SpokenText
from omniduplex.engine.conversation.response_items import ResponseItems
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.conversation.tool_calls import CallItem
from omniduplex.protocol.duplex import (
    AudioFormat,
    ContentPart,
    DuplexEvent,
    FunctionCallDelta,
    FunctionCallDone,
    ItemAdded,
    ItemCreated,
    ItemDone,
    OutputItemAdded,
    OutputItemDone,
    Usage,
)

IN_CONVERSATION = Wanted(
    modalities=("audio",),
    output_format=AudioFormat(),
    instructions=None,
    temperature=None,
    max_tokens=None,
    voice=None,
    tools=(),
    tool_choice="auto",
    metadata={"topic": "weather"},
    in_history=True,
    interruptible=True,
    input=None,
)
ASIDE = structs.replace(IN_CONVERSATION, in_history=False)
CALL = CallItem(item_id="call", call_id="c1", name="look_up", arguments="{}")
WORDS = (ContentPart(type="output_audio", transcript="good day"),)


def output(
    wanted: Wanted, *, cause_first: bool = True
) -> tuple[ResponseItems, History, list[DuplexEvent]]:
    history, events = History(), list[DuplexEvent]()
    items = ResponseItems("resp", "conv", wanted, history, events.append, cause_first=cause_first)
    return items, history, events


@pytest.mark.parametrize(
    ("cause_first", "told"),
    [
        (True, [OutputItemAdded, ItemAdded, ItemCreated]),
        (False, [ItemAdded, ItemCreated, OutputItemAdded]),
    ],
)
def test_a_message_is_told_where_it_is_put(cause_first: bool, told: list[type]) -> None:
    items, history, events = output(IN_CONVERSATION, cause_first=cause_first)
    spoken = SpokenText()
    index = items.open_message(spoken)
    assert [type(event) for event in events] == told
    assert history.get("item_resp").spoken is spoken
    assert history.get("item_resp").item.status == "in_progress"

    events.clear()
    items.finish_message(index, "completed", WORDS)
    assert [type(event) for event in events] == [OutputItemDone, ItemDone]
    (item,) = items.response("completed").output
    assert item == history.get("item_resp").item
    assert (item.status, item.content) == ("completed", WORDS)


def test_what_is_said_aside_is_not_in_the_conversation() -> None:
    items, history, events = output(ASIDE)
    index = items.open_message(SpokenText())
    items.finish_message(index, "completed", WORDS)
    items.add_call(CALL)

    assert not len(history)
    assert not any(isinstance(event, ItemAdded | ItemCreated | ItemDone) for event in events)
    assert [item.id for item in items.response("completed").output] == ["item_resp", "call"]
    assert items.response("completed").conversation_id is None


def test_a_call_stands_behind_the_message() -> None:
    items, history, events = output(IN_CONVERSATION)
    items.open_message(SpokenText())
    events.clear()
    items.add_call(CALL)

    assert [type(event) for event in events] == [
        OutputItemAdded,
        ItemAdded,
        ItemCreated,
        FunctionCallDelta,
        FunctionCallDone,
        OutputItemDone,
        ItemDone,
    ]
    done = events[-1]
    assert isinstance(done, ItemDone)
    assert (done.item, done.previous_item_id) == (CALL.completed(), "item_resp")
    assert history.get("call").response_id == "resp"


def test_the_output_is_told_at_the_end() -> None:
    items, _, _ = output(IN_CONVERSATION)
    assert not items
    items.open_message(SpokenText())
    assert items
    assert items.response("in_progress").output == ()
    ended = items.response("failed", usage=Usage.of_text(3, 2))
    assert len(ended.output) == 1
    assert (ended.conversation_id, ended.metadata) == ("conv", {"topic": "weather"})
    assert ended.usage == Usage.of_text(3, 2)
