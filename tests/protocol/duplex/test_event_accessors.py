"""What every event says of itself, and what some say by the names that clients use."""

from __future__ import annotations

import base64
import json

import pytest
from tests.protocol.duplex.samples import samples

from omniduplex.clients.reconnect import ConnectionResumed
from omniduplex.protocol.duplex import (
    AudioDelta,
    Dialect,
    DuplexError,
    TextDelta,
    TranscriptDelta,
    UnknownEvent,
    decode_event,
    encode_event,
    error_event,
    project,
)

AUDIO = AudioDelta(response_id="r", item_id="i", delta=b"\x01\x02\x03", sample_rate_hz=24000)


def test_an_event_renders_the_object_of_the_wire() -> None:
    assert AUDIO.to_realtime() == {
        "type": "response.output_audio.delta",
        "response_id": "r",
        "item_id": "i",
        "output_index": 0,
        "content_index": 0,
        "delta": "AQID",
        "sample_rate_hz": 24000,
    }
    received = decode_event(encode_event(AUDIO, event_id="e", seq=7))
    assert received.raw == AUDIO.to_realtime() | {"event_id": "e", "server_event_seq": 7}


def test_an_event_that_nobody_knows_renders_as_it_came() -> None:
    event = decode_event('{"type": "x.y", "z": 1}')

    assert event.type == "x.y"
    assert event.raw == event.to_realtime() == {"type": "x.y", "z": 1}


NAMED = ("session_id", "response_id", "item_id")
CONTENT = {"delta", "text", "transcript"}
ACCESSORS = {*NAMED, "type", "event_id", "server_event_seq", "audio", "text", "raw"}


@pytest.mark.parametrize("dialect", Dialect)
def test_every_event_says_what_it_is_about_or_that_it_is_about_nothing(dialect: Dialect) -> None:
    for number, sent in enumerate(samples(dialect), 1):
        projected = project(sent, dialect)
        if projected is None:
            continue
        text = encode_event(projected, event_id=f"e{number}", seq=number)
        wire = json.loads(text)
        for event in (decode_event(text), UnknownEvent(type=wire["type"], raw=wire)):
            assert (event.type, event.raw["type"]) == (wire["type"], wire["type"])
            assert event.event_id == f"e{number}"
            assert event.server_event_seq == number
            assert {name: getattr(event, name) for name in NAMED} == {
                name: wire.get(name) for name in NAMED
            }


def test_what_is_in_an_event_is_words_or_audio_or_neither() -> None:
    for event in samples(Dialect.DUPLEX):
        wire = event.raw
        found = [wire[name] for name in CONTENT if name in wire]
        if isinstance(event, AudioDelta):
            assert (event.audio, event.text) == (base64.b64decode(found[0]), None)
            continue
        assert event.audio is None
        is_words = "text" in event.type or "transcri" in event.type
        assert event.text == (found[0] if found and is_words else None)


def test_events_of_a_clients_own_and_unknown_ones_can_be_asked_for_the_same() -> None:
    for event in (
        ConnectionResumed(attempt=1),
        decode_event('{"type": "x", "event_id": 1, "response_id": {}, "server_event_seq": true}'),
    ):
        assert {getattr(event, name) or None for name in ACCESSORS - {"type", "raw"}} == {None}
    assert decode_event('{"type": "x", "text": "Hi"}').text == "Hi"


def test_content_goes_by_its_kind() -> None:
    assert AUDIO.type == "response.output_audio.delta"
    assert AUDIO.audio == b"\x01\x02\x03"
    assert TextDelta(response_id="r", item_id="i", delta="Hi").text == "Hi"
    assert TranscriptDelta(response_id="r", item_id="i", delta="Hi").text == "Hi"


def test_an_error_names_the_event_that_it_is_about() -> None:
    event = error_event(DuplexError("bad_audio", "odd bytes", event_id="evt_1"))

    assert (event.code, event.message, event.related_event_id) == (
        "bad_audio",
        "odd bytes",
        "evt_1",
    )
