"""What a conversation takes from a client, and how much of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

import msgspec
import pytest

from omniduplex.engine.conversation.history import History, HistoryEntry
from omniduplex.engine.conversation.new_items import (
    MAX_CONVERSATION_CHARS,
    MAX_ITEM_BYTES,
    MAX_NAME_CHARS,
    ItemReader,
    as_told,
)
from omniduplex.protocol.duplex import (
    AudioFormat,
    ContentPart,
    DuplexError,
    Item,
    ItemAdded,
    ItemInput,
    encode_event,
)

LONG = "x" * (MAX_NAME_CHARS + 1)
CALL = ItemInput(type="function_call", name="f", call_id="c")


def reader(history: History) -> ItemReader:
    counter = itertools.count()
    return ItemReader(
        history=history,
        new_id=lambda prefix: f"{prefix}_{next(counter)}",
        input_format=AudioFormat(),
        takes_audio=True,
        takes_images=True,
    )


def put(history: History, given: ItemInput) -> Item:
    item = reader(history).read(given, "item", among=history).item
    history.add(HistoryEntry(item))
    return item


@pytest.mark.parametrize(
    ("role", "part", "name"),
    [
        ("user", ContentPart(type="text", text="a"), "input_text"),
        ("system", ContentPart(type="text", text="a"), "input_text"),
        ("assistant", ContentPart(type="text", text="a"), "output_text"),
        ("assistant", ContentPart(type="audio", transcript="a"), "output_audio"),
        ("assistant", ContentPart(type="output_audio", transcript="a"), "output_audio"),
    ],
)
def test_parts_have_the_apis_names_whatever_the_client_calls_them(
    role: Literal["user", "assistant", "system"], part: ContentPart, name: str
) -> None:
    put_in = put(History(), ItemInput(role=role, content=(part,)))
    assert put_in.content == (msgspec.structs.replace(part, type=name),)


@pytest.mark.parametrize("field", ["id", "name", "call_id"])
def test_names_have_an_end(field: str) -> None:
    history = History()
    with pytest.raises(DuplexError) as refused:
        put(history, msgspec.structs.replace(CALL, **{field: LONG}))
    assert (refused.value.code, refused.value.param) == ("bad_event", f"item.{field}")
    put(history, msgspec.structs.replace(CALL, **{field: LONG[1:]}))


@pytest.mark.parametrize(
    "given",
    [
        ItemInput(),
        ItemInput(content=(ContentPart(type="input_text", text="", detail="x" * 1000),)),
        ItemInput(id="x" * MAX_NAME_CHARS),
        CALL,
        ItemInput(content=(ContentPart(type="input_text", text=""),) * 100),
    ],
)
def test_no_item_is_free(given: ItemInput) -> None:
    history = History()
    item = put(history, given)
    names = (item.id, item.name, item.call_id)
    assert history.chars >= sum(len(name or "") for name in names) + len(item.content or ())
    assert history.chars >= 64
    full = MAX_CONVERSATION_CHARS // history.chars
    history.chars *= full
    with pytest.raises(DuplexError) as refused:
        put(history, msgspec.structs.replace(given, id=f"{given.id or ''}2"[-MAX_NAME_CHARS:]))
    assert refused.value.code == "input_backpressure"


def said(text: str) -> ItemInput:
    return ItemInput(content=(ContentPart(type="input_text", text=text),))


def called(text: str) -> ItemInput:
    return msgspec.structs.replace(CALL, arguments=text)


@pytest.mark.parametrize(
    ("letter", "wire_bytes"), [("x", 1), ("é", 2), ("🙂", 4), ('"', 2), ("\0", 6)]
)
@pytest.mark.parametrize("build", [said, called])
def test_an_item_has_an_end_in_bytes_on_the_wire(
    build: Callable[[str], ItemInput], letter: str, wire_bytes: int
) -> None:
    beside = len(msgspec.json.encode(put(History(), build(" "))))
    letters = (MAX_ITEM_BYTES - beside) // wire_bytes
    item = put(History(), build(letter * letters))
    told = ItemAdded(item=item, previous_item_id="x" * MAX_NAME_CHARS)
    assert len(encode_event(told, event_id="event", seq=1)) < 1024 * 1024

    with pytest.raises(DuplexError) as refused:
        put(History(), build(letter * (letters + 2)))
    assert (refused.value.code, refused.value.param) == ("bad_event", "item")


def shown(chars: int, beside: str) -> ItemInput:
    url = "data:image/png;base64," + "A" * chars
    parts = (ContentPart(type="input_image", image_url=url), *said(beside).content)
    return ItemInput(id="shown", content=parts)


@pytest.mark.parametrize("image_chars", [4, 500_000, MAX_ITEM_BYTES, 4_000_000])
@pytest.mark.parametrize("text_chars", [1, 300_000, 500_000])
def test_an_item_is_told_whole_as_far_as_a_stock_client_can_read_it(
    image_chars: int, text_chars: int
) -> None:
    item = put(History(), shown(image_chars, "x" * text_chars))
    told = as_told(item)
    assert len(encode_event(ItemAdded(item=told), event_id="event", seq=1)) < 1024 * 1024
    fits = len(msgspec.json.encode(item)) <= MAX_ITEM_BYTES
    assert fits is (image_chars + text_chars < MAX_ITEM_BYTES - 1000)
    assert (told == item) is fits
    assert told.content
    assert (told.content[0].image_url is msgspec.UNSET) is not fits
    assert told.content[1:] == (ContentPart(type="input_text", text="x" * text_chars),)


def test_what_is_taken_out_makes_room_for_just_as_much() -> None:
    history = History()
    put(history, ItemInput(id="stays", content=(ContentPart(type="input_text", text="hello"),)))
    before = history.chars
    history.add(HistoryEntry(Item(id="answer", role="assistant", content=())))
    grown = (ContentPart(type="output_text", text="good day " * 100),)
    history.replace(Item(id="answer", role="assistant", content=grown))
    assert history.chars > before + 900
    history.remove("answer")
    assert history.chars == before
