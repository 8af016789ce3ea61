"""Answers that are stopped, cut or fail, and what of them stays."""

from __future__ import annotations

import pytest
from tests.entrypoints.turn.half_duplex import DONE, HalfDuplex, sound, spoken
from tests.entrypoints.turn.sounds import tone

from omniduplex.engine.turns import TurnChunk, TurnMessage
from omniduplex.entrypoints.openai.turn_realtime.effects import Hear
from omniduplex.protocol.duplex import (
    AppendAudio,
    CancelResponse,
    ClearOutputAudio,
    Commit,
    CreateItem,
    CreateResponse,
    DeleteItem,
    DuplexCommand,
    ItemInput,
    ResponseOptions,
    RetrieveItem,
    TruncateItem,
)


def test_what_came_of_an_answer_that_fails_stays_as_the_client_knows_it(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.answers(spoken("good "))
    talk.breaks("the voice broke")

    events = talk.shown()
    assert "conversation.item.deleted" not in [event["type"] for event in events]
    (item,) = events[-2]["response"]["output"]
    assert item["status"] == "incomplete"
    assert item["content"] == [{"type": "output_audio", "transcript": "good "}]
    talk.send(RetrieveItem(item_id=item["id"]))
    assert talk.one("conversation.item.retrieved")["item"] == item
    talk.asks()
    assert talk.request().messages[1] == TurnMessage(role="assistant", content=("good ",))


def test_of_an_answer_that_fails_before_its_first_word_nothing_is_there(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.breaks("the voice broke")
    assert talk.one("response.done")["response"]["output"] == []
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)


@pytest.mark.parametrize("command", [CancelResponse(), ClearOutputAudio()])
def test_an_answer_can_be_stopped_and_what_came_of_it_stays(
    talk: HalfDuplex, command: DuplexCommand
) -> None:
    talk.writes("hello")
    ask = talk.asks()
    talk.answers(spoken("good "))
    talk.send(command)
    talk.answers(spoken("day"), DONE)

    response = talk.one("response.done")["response"]
    assert response["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert talk.stopped == [ask.response_id]
    talk.asks()
    assert talk.request().messages[1].content == ("good ",)


def test_a_cancel_that_comes_too_late_says_so(talk: HalfDuplex) -> None:
    talk.send(CancelResponse(event_id="e1"))
    assert talk.error()["code"] == "response_cancel_not_active"
    talk.send(ClearOutputAudio())
    assert talk.types() == ["output_audio_buffer.cleared"]


def test_of_an_answer_that_was_cut_what_was_heard_counts(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.answers(spoken("one two ", 1000), spoken("three four", 1000), DONE)
    item_id = talk.one("response.done")["response"]["output"][0]["id"]
    talk.send(TruncateItem(item_id=item_id, audio_end_ms=1000))
    assert talk.one("conversation.item.truncated")["audio_end_ms"] == 1000

    talk.send(RetrieveItem(item_id=item_id))
    item = talk.one("conversation.item.retrieved")["item"]
    assert item["content"] == [{"type": "output_audio", "transcript": "one two"}]
    talk.asks()
    assert talk.request().messages[1].content == ("one two",)


def test_what_was_cut_off_does_not_come_back(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.answers(spoken("one two ", 1000), spoken("three four", 1000), DONE)
    item_id = talk.one("response.done")["response"]["output"][0]["id"]
    for audio_end_ms in (1000, 5000, 500, 1000):
        talk.send(TruncateItem(item_id=item_id, audio_end_ms=audio_end_ms))
    cuts = [e for e in talk.shown() if e["type"] == "conversation.item.truncated"]
    assert [cut["audio_end_ms"] for cut in cuts] == [1000, 1000, 500, 500]

    talk.send(RetrieveItem(item_id=item_id))
    item = talk.one("conversation.item.retrieved")["item"]
    assert item["content"] == [{"type": "output_audio", "transcript": "one"}]


def test_an_answer_that_is_being_made_is_retrieved_as_far_as_it_is(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.answers(spoken("one two ", 1000))
    item_id = talk.one("response.output_item.added")["item"]["id"]
    talk.send(RetrieveItem(item_id=item_id))
    item = talk.one("conversation.item.retrieved")["item"]
    assert item["status"] == "in_progress"
    assert item["content"] == [{"type": "output_audio", "transcript": "one two "}]


def test_so_is_one_that_is_written(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_modalities=("text",))
    talk.answers(spoken("one two "), spoken("three"))
    item_id = talk.one("response.output_item.added")["item"]["id"]
    talk.send(RetrieveItem(item_id=item_id))
    item = talk.one("conversation.item.retrieved")["item"]
    assert item["content"] == [{"type": "output_text", "text": "one two three"}]


def test_an_item_that_is_taken_out_is_waited_for_no_more(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    item_id = talk.last(Hear).part[0]
    talk.writes("hello")
    talk.send(CreateResponse())
    talk.shown()
    talk.send(DeleteItem(item_id=item_id))
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)
    talk.hears("too late")
    assert talk.types() == ["conversation.item.deleted"]


@pytest.mark.parametrize("interruptible", [True, False])
def test_no_answer_is_more_or_less_interruptible_than_another(
    talk: HalfDuplex, interruptible: bool
) -> None:
    talk.writes("hello")
    talk.shown()
    talk.send(CreateResponse(response=ResponseOptions(interruptible=interruptible)))
    error = talk.error()
    assert (error["code"], error["param"]) == ("unsupported", "response.interruptible")
    assert talk.conversation.answering is None


def test_speech_over_an_answer_is_kept_and_ends_nothing(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_modalities=("text",))
    talk.answers(TurnChunk(text="good "))
    talk.send(AppendAudio(audio=tone(400)))
    talk.send(Commit())
    talk.answers(TurnChunk(text="day"), DONE)
    response = talk.one("response.done")["response"]
    assert response["status"] == "completed"
    assert response["output"][0]["content"] == [{"type": "output_text", "text": "good day"}]
    assert not talk.stopped


def test_only_what_was_spoken_can_be_cut(talk: HalfDuplex) -> None:
    talk.send(CreateItem(item=ItemInput(id="mine")))
    talk.shown()
    talk.send(TruncateItem(item_id="mine", audio_end_ms=1))
    assert talk.error()["param"] == "item_id"
    talk.send(CreateItem(item=ItemInput(id="mine")))
    assert talk.error()["code"] == "item_create_duplicate_item_id"
