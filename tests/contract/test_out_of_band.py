"""Responses beside the conversation over a real socket, while an answer is under way or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.contract.beside import two_echoes
from tests.contract.caller import Caller, Event, call, one, types

pytestmark = pytest.mark.e2e

STORY = "a story of seven words or eight"
DIALECTS = ["duplex", "openai", "beta"]
LIMIT = 4


@pytest.fixture(scope="module")
def quick() -> Iterator[str]:
    """What is beside the conversation is answered at once."""
    with two_echoes(beside_ends=True) as base:
        yield base


@pytest.fixture(scope="module")
def endless() -> Iterator[str]:
    """What is beside the conversation has no end of its own."""
    with two_echoes(beside_ends=False) as base:
        yield base


@pytest.fixture(params=DIALECTS)
def caller(request: pytest.FixtureRequest, quick: str) -> Iterator[Caller]:
    with by_hand(quick, request.param) as caller:
        yield caller


@pytest.fixture(params=DIALECTS)
def endless_caller(request: pytest.FixtureRequest, endless: str) -> Iterator[Caller]:
    with by_hand(endless, request.param) as caller:
        yield caller


class by_hand:  # noqa: N801 - it is used as the function that it might be
    """A connection whose client ends turns."""

    def __init__(self, base: str, dialect: str) -> None:
        self._call = call(base, dialect)

    def __enter__(self) -> Caller:
        caller = self._call.__enter__()
        if caller.dialect == "openai":
            caller.configure(audio={"input": {"turn_detection": None}})
        if caller.dialect == "beta":
            caller.configure(turn_detection=None)
        return caller

    def __exit__(self, *raised: Any) -> None:
        self._call.__exit__(*raised)


def begin_an_answer(caller: Caller) -> str:
    """An answer has spoken, and speaks on as soon as it hears something; its id."""
    caller.writes(STORY)
    caller.send("response.create")
    caller.says(0.2, hz=0)
    events = caller.until(f"response.{audio_of(caller)}.delta")
    response_id = events[-1]["response_id"]
    assert isinstance(response_id, str)
    return response_id


def audio_of(caller: Caller) -> str:
    return "audio" if caller.dialect == "beta" else "output_audio"


def ask_beside(caller: Caller, text: str, **response: Any) -> None:
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    caller.send(
        "response.create",
        response={"conversation": "none", "modalities": ["text"], "input": [message], **response},
    )


def begin_beside(caller: Caller, text: str) -> str:
    """Ask beside the conversation, where it is never answered; the id."""
    ask_beside(caller, text)
    response_id = caller.until("response.output_item.added")[-1]["response_id"]
    assert isinstance(response_id, str)
    return response_id


def refusal(caller: Caller, wire_type: str, **fields: Any) -> Event:
    """The error that an event draws, whatever else goes on."""
    caller.send(wire_type, event_id="e1", **fields)
    error = caller.until("error")[-1]["error"]
    assert error["event_id"] == "e1"
    assert isinstance(error, dict)
    return error


def ended(caller: Caller, response_id: str) -> list[Event]:
    """All events up to this response's end."""
    events: list[Event] = []
    while not events or events[-1]["response"]["id"] != response_id:
        events += caller.until("response.done")
    return events


def of(events: Sequence[Event], response_id: str) -> list[Event]:
    named = (event.get("response_id") or event.get("response", {}).get("id") for event in events)
    return [event for event, name in zip(events, named, strict=True) if name == response_id]


def hear_out(caller: Caller, response_id: str) -> list[Event]:
    caller.says(5.0, hz=0)
    return ended(caller, response_id)


def test_a_text_is_written_while_an_answer_is_spoken(caller: Caller) -> None:
    answer = begin_an_answer(caller)
    ask_beside(caller, "how do they feel", metadata={"topic": "mood"})
    created = caller.until("response.created")[-1]["response"]
    assert created["id"] != answer
    assert created["metadata"]["topic"] == "mood"
    events = ended(caller, created["id"])
    done = events[-1]["response"]
    assert done["status"] == "completed"
    assert done["metadata"]["topic"] == "mood"
    text = "".join(event["delta"] for event in of(events, created["id"]) if "delta" in event)
    assert text == "You said how do they feel"
    assert {event["type"] for event in events if "item" in event["type"].split(".")} == set()

    spoken = hear_out(caller, answer)
    assert spoken[-1]["response"]["status"] == "completed"
    assert of(spoken, created["id"]) == []
    audio = [
        event for event in caller.seen if event["type"] == f"response.{audio_of(caller)}.delta"
    ]
    assert {event["response_id"] for event in audio} == {answer}


def test_sound_beside_carries_its_own_id(caller: Caller) -> None:
    answer = begin_an_answer(caller)
    ask_beside(caller, "one two", modalities=["audio", "text"])
    beside = caller.until("response.created")[-1]["response"]["id"]
    shown = types(of(ended(caller, beside), beside))
    assert f"response.{audio_of(caller)}.delta" in shown
    assert "output_audio_buffer.started" not in shown
    assert hear_out(caller, answer)[-1]["response"]["status"] == "completed"


def test_the_next_answer_knows_nothing_of_it(caller: Caller) -> None:
    ask_beside(caller, "a secret")
    beside = caller.until("response.created")[-1]["response"]["id"]
    item_id = ended(caller, beside)[-1]["response"]["output"][0]["id"]
    error = refusal(caller, "conversation.item.retrieve", item_id=item_id)
    assert error["code"] in ("item_not_found", "item_retrieve_invalid_item_id")

    caller.writes("out loud")
    caller.send("response.create", response={"conversation": "none", "modalities": ["text"]})
    events = caller.until("response.done")
    text = "".join(event["delta"] for event in events if event["type"].endswith("text.delta"))
    assert text == "You said out loud"


def test_a_cancel_by_id_ends_the_one_beside(endless_caller: Caller) -> None:
    caller = endless_caller
    answer = begin_an_answer(caller)
    first, second = begin_beside(caller, "one"), begin_beside(caller, "two")
    caller.send("response.cancel", response_id=first)
    done = ended(caller, first)[-1]["response"]
    assert done["status"] == "cancelled"
    assert done["status_details"]["reason"] == "client_cancelled"

    caller.send("response.cancel")
    events = ended(caller, answer)
    assert events[-1]["response"]["status"] == "cancelled"
    assert of(events, second) == []
    error = refusal(caller, "response.cancel")
    assert error["code"] in ("response_not_active", "response_cancel_not_active")
    caller.send("response.cancel", response_id=second)
    assert ended(caller, second)[-1]["response"]["status"] == "cancelled"


def test_one_too_many_is_refused_and_the_conversation_goes_on(endless_caller: Caller) -> None:
    caller = endless_caller
    under_way = [begin_beside(caller, f"number {number}") for number in range(LIMIT)]
    assert len(set(under_way)) == LIMIT
    error = refusal(caller, "response.create", response={"conversation": "none"})
    assert (error["code"], error["param"]) == ("too_many_responses", "response.conversation")
    assert hear_out(caller, begin_an_answer(caller))[-1]["response"]["status"] == "completed"


def test_speech_over_an_answer_leaves_what_is_beside(endless: str) -> None:
    with call(endless, "openai") as caller:
        answer = begin_an_answer(caller)
        beside = begin_beside(caller, "still there")
        caller.says(0.6)
        events = ended(caller, answer)
        assert events[-1]["response"]["status"] == "cancelled"
        assert of(events, beside) == []
        caller.send("response.cancel", response_id=beside)
        assert ended(caller, beside)[-1]["response"]["status"] == "cancelled"


def test_a_session_that_is_closed_ends_each(endless: str) -> None:
    with by_hand(endless, "duplex") as caller:
        under_way = [begin_beside(caller, "one"), begin_beside(caller, "two")]
        caller.send("session.close")
        events = caller.until("session.closed")
    done = [event["response"] for event in events if event["type"] == "response.done"]
    assert [response["id"] for response in done] == under_way
    assert {response["status"] for response in done} == {"cancelled"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_cannot_refuses_and_names_the_option(paced_base: str, dialect: str) -> None:
    with by_hand(paced_base, dialect) as caller:
        answer = begin_an_answer(caller)
        error = refusal(caller, "response.create", response={"conversation": "none"})
        assert error["code"] in (
            "response_already_active",
            "conversation_already_has_active_response",
        )
        assert error["param"] == "response.conversation"
        assert one(hear_out(caller, answer), "response.done")["response"]["status"] == "completed"
