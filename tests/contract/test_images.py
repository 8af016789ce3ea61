"""Images in items, and how they come back: interop, MUST 5 and 29."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.contract.caller import Caller, call, types
from tests.contract.seeing_echo import seeing_echo
from tests.entrypoints.running import running

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

# What `websockets` reads of one message if nobody asks for more.
STOCK_BYTES = 1024 * 1024
TOLD = {"conversation.item.added", "conversation.item.created", "conversation.item.done"}


@pytest.fixture(scope="module")
def sight() -> Iterator[str]:
    with DuplexOmni(pipeline=seeing_echo()) as omni, running(create_app(omni)) as server:
        yield server.base


@pytest.fixture(params=["duplex", "openai", "beta"])
def stock(sight: str, request: pytest.FixtureRequest) -> Iterator[Caller]:
    with call(sight, request.param, max_size=STOCK_BYTES) as caller:
        yield caller


def shown(size: int, item_id: str) -> dict[str, Any]:
    """A message of a text and an image, whose data URL has about `size` characters."""
    image = {"type": "input_image", "image_url": "data:image/jpeg;base64," + "A" * (size // 4 * 4)}
    text = {"type": "input_text", "text": "what is this"}
    return {"type": "message", "role": "user", "id": item_id, "content": [text, image]}


def contents(caller: Caller, item: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The item's content wherever it is told: when it comes, and when it is asked for."""
    events = caller.puts(item)
    caller.send("conversation.item.retrieve", item_id=item["id"])
    events += caller.until("conversation.item.retrieved")
    told = [event for event in events if event["type"] in TOLD | {"conversation.item.retrieved"}]
    assert len(told) >= 2, types(events)
    return [event["item"]["content"] for event in told]


def test_an_image_comes_back_as_it_was_sent(stock: Caller) -> None:
    item = shown(400_000, "small")
    for content in contents(stock, item):
        assert content == item["content"]


def test_an_image_too_large_for_a_stock_client_comes_back_without_its_data(stock: Caller) -> None:
    for content in contents(stock, shown(3_000_000, "large")):
        assert content == [
            {"type": "input_text", "text": "what is this"},
            {"type": "input_image"},
        ]
    stock.still_answers()


def test_sound_beside_a_large_image_is_heard(stock: Caller) -> None:
    item = shown(3_000_000, "both")
    item["content"].append({"type": "input_audio", "audio": stock.sound(1.0)})
    stock.send("conversation.item.create", item=item)
    completed = "conversation.item.input_audio_transcription.completed"
    heard = stock.until(completed)[-1]
    assert (heard["item_id"], heard["transcript"]) == ("both", "tone 300 Hz 1.0 s")
