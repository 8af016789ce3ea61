"""What the duplex dialect shows, as the contract has it; every event has a sample."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from pydantic import ValidationError
from tests.protocol.duplex.rendering import OFFICIAL, TIER_3, named, rendered
from tests.protocol.duplex.samples import CANCELLED, CREATED, samples

from omniduplex.protocol.duplex import (
    ConversationCreated,
    Dialect,
    DuplexError,
    DuplexEvent,
    DuplexResponse,
    ErrorEvent,
    OutputStarted,
    OutputStopped,
    RealtimeEvent,
    ResponseDone,
    TranscriptionDelta,
    decode_event,
    encode_event,
    error_event,
    project,
)

OPENAI_SAMPLES, DUPLEX_SAMPLES = samples(Dialect.OPENAI), samples(Dialect.DUPLEX)
# Official events that the contract does not have, where it fixes what comes in which order.
NOT_IN_THE_CONTRACT = (ConversationCreated, TranscriptionDelta, OutputStarted, OutputStopped)
# What the duplex dialect says that the official models do not allow.
UNOFFICIAL = {
    "session.created": "the default input rate is 16000 Hz",
    "session.updated": "the default input rate is 16000 Hz",
    "response.created": "metadata holds an object",
    "response.done": "metadata holds an object, an item is cancelled, the reason is barge_in",
    "conversation.item.retrieved": "an item is cancelled",
    "response.output_item.done": "an item is cancelled",
}


def duplex(event: DuplexEvent) -> dict[str, Any]:
    return rendered(event, Dialect.DUPLEX)


def test_there_is_a_sample_of_every_event() -> None:
    for sample in (OPENAI_SAMPLES, DUPLEX_SAMPLES):
        assert [type(event) for event in sample] == list(get_args(DuplexEvent))


@pytest.mark.parametrize(
    "event",
    [event for event in DUPLEX_SAMPLES if isinstance(event, NOT_IN_THE_CONTRACT)],
    ids=named,
)
def test_the_duplex_dialect_keeps_to_the_contracts_fan_outs(event: DuplexEvent) -> None:
    assert (project(event, Dialect.DUPLEX) is None) == isinstance(event, NOT_IN_THE_CONTRACT)


IN_THE_CONTRACT = [event for event in DUPLEX_SAMPLES if not isinstance(event, NOT_IN_THE_CONTRACT)]


@pytest.mark.parametrize("event", IN_THE_CONTRACT, ids=named)
def test_the_duplex_dialect_shows_every_other_event_and_loses_nothing(event: DuplexEvent) -> None:
    projected = project(event, Dialect.DUPLEX)
    assert isinstance(projected, RealtimeEvent)
    text = encode_event(projected, event_id="event_1", seq=1)
    again = decode_event(text)
    assert isinstance(again, RealtimeEvent)
    assert type(again) is type(event)
    assert json.loads(encode_event(again, event_id="event_1", seq=1)) == json.loads(text)


@pytest.mark.parametrize(
    "event", [event for event in IN_THE_CONTRACT if not isinstance(event, TIER_3)], ids=named
)
def test_the_official_models_take_the_duplex_dialect_but_for_the_exceptions(
    event: DuplexEvent,
) -> None:
    message = duplex(event)
    if message["type"] in UNOFFICIAL:
        with pytest.raises(ValidationError):
            OFFICIAL.validate_python(message)
    else:
        assert OFFICIAL.validate_python(message).type == message["type"]


def test_the_duplex_dialect_renders_facts_as_metadata() -> None:
    created = duplex(CREATED)["response"]
    assert created["modalities"] == ["audio"]
    assert created["metadata"] == {
        "trace": "turn-3",
        "duplex_event": {
            "type": "response.created",
            "session_id": "duplex-1",
            "response_id": "resp_1",
            "epoch": 0,
            "turn_id": 1,
        },
    }
    finished = duplex(CANCELLED)["response"]
    assert finished["status_details"] == {"type": "cancelled", "reason": "barge_in"}
    assert finished["output"][0]["status"] == "cancelled"
    assert finished["metadata"] == {
        "trace": "turn-3",
        "type": "response.done",
        "session_id": "duplex-1",
        "response_id": "resp_1",
        "epoch": 0,
        "committed": True,
        "reason": "barge_in",
        "playback": {
            "generated_ms": 2400,
            "sent_ms": 2400,
            "played_ms": 1000,
            "committed_ms": 1000,
        },
    }
    assert "facts" not in created
    assert "facts" not in finished


def test_a_client_cannot_overwrite_the_facts_and_has_its_own_back() -> None:
    facts = CANCELLED.response.facts
    response = DuplexResponse(
        id="r", status="completed", metadata={"epoch": 9, "mine": 1}, facts=facts
    )
    metadata = duplex(ResponseDone(response_id="r", response=response))["response"]["metadata"]
    assert (metadata["epoch"], metadata["mine"]) == (0, 1)
    assert metadata["client"] == {"epoch": 9, "mine": 1}


def test_a_duplex_error_names_a_session_field_as_the_session_does() -> None:
    error = duplex(DUPLEX_SAMPLES[-1])["error"]
    assert (error["param"], error["retryable"]) == ("turn_detection", False)
    other = error_event(DuplexError("bad_event", "No.", param="item.call_id"))
    assert isinstance(other, ErrorEvent)
    assert duplex(other)["error"]["param"] == "item.call_id"


def test_the_contract_has_one_name_for_an_item_that_is_not_there() -> None:
    error = error_event(DuplexError("item_retrieve_invalid_item_id", "No item x.", param="item_id"))
    assert duplex(error)["error"]["code"] == "item_not_found"
