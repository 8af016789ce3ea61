"""A part of an assistant's message is told from its opening to its end."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from omniduplex.engine.conversation.message_part import MessagePart
from omniduplex.protocol.duplex import (
    AudioDone,
    ContentPart,
    ContentPartAdded,
    ContentPartDone,
    DuplexEvent,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
)

PLACE: dict[str, Any] = {
    "response_id": "resp",
    "item_id": "item",
    "output_index": 1,
    "content_index": 2,
}


def part(kind: Literal["audio", "text"]) -> tuple[MessagePart, list[DuplexEvent]]:
    events: list[DuplexEvent] = []
    return MessagePart("resp", "item", 1, 2, kind, events.append), events


def test_spoken_words_are_told_one_by_one_and_as_a_whole() -> None:
    spoken, events = part("audio")
    spoken.open()
    spoken.say("good ")
    spoken.say("day")
    spoken.close(sounded=True)

    assert events == [
        ContentPartAdded(**PLACE, part=ContentPart(type="audio", transcript="")),
        TranscriptDelta(**PLACE, delta="good "),
        TranscriptDelta(**PLACE, delta="day"),
        AudioDone(**PLACE),
        TranscriptDone(**PLACE, transcript="good day"),
        ContentPartDone(**PLACE, part=ContentPart(type="audio", transcript="good day")),
    ]
    assert spoken.content() == ContentPart(type="output_audio", transcript="good day")
    assert spoken.content("good") == ContentPart(type="output_audio", transcript="good")
    assert spoken.content("") == ContentPart(type="output_audio", transcript="")


def test_written_words_are_told_as_text() -> None:
    written, events = part("text")
    written.open()
    written.say("good day")
    written.close()

    assert events == [
        ContentPartAdded(**PLACE, part=ContentPart(type="text", text="")),
        TextDelta(**PLACE, delta="good day"),
        TextDone(**PLACE, text="good day"),
        ContentPartDone(**PLACE, part=ContentPart(type="text", text="good day")),
    ]
    assert written.content() == ContentPart(type="output_text", text="good day")


@pytest.mark.parametrize(
    ("kind", "ends"), [("audio", [ContentPartDone]), ("text", [TextDone, ContentPartDone])]
)
def test_a_part_without_sound_and_words_still_ends(
    kind: Literal["audio", "text"], ends: list[type]
) -> None:
    empty, events = part(kind)
    assert not empty.opened
    empty.open()
    assert empty.opened
    empty.close()
    assert [type(event) for event in events[1:]] == ends
