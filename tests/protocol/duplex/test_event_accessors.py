"""What every event says of itself, and what some say by the names that clients use."""

from __future__ import annotations

from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexError,
    TextDelta,
    TranscriptDelta,
    decode_event,
    encode_event,
    error_event,
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
