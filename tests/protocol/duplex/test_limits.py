"""How large, deep and wide a client event may be, and that a refusal costs no walk through it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omniduplex.protocol.duplex import (
    MAX_EVENT_BYTES,
    MAX_EVENT_VALUES,
    MAX_PLAIN_EVENT_BYTES,
    AppendAudio,
    CreateItem,
    DuplexError,
    codec,
    decode_command,
)

JUNK = "[" + "[]," * 1_000_000 + "1]"
FRAMES = {
    "metadata": '{"type":"session.update","event_id":"z","session":{"metadata":{"k":%s}}}',
    "payload": '{"type":"turn.signal","event":"x","event_id":"z","payload":{"k":%s}}',
    "unknown": '{"type":"nope","event_id":"z","payload":%s}',
    "input": '{"type":"response.create","event_id":"z","response":{"input":%s}}',
    "no type": '{"event_id":"z","session":%s}',
    "a strange type": '{"event_id":"z","type":%s}',
    "append": '{"type":"input_audio_buffer.append","event_id":"z","format":{"k":%s}}',
    "append, unknown": '{"type":"input_audio_buffer.append","event_id":"z","k":%s}',
    "item": '{"type":"conversation.item.create","event_id":"z","item":{"content":%s}}',
    "item, unknown": '{"type":"conversation.item.create","event_id":"z","k":%s}',
    "a voice": '{"type":"session.update","event_id":"z","session":{"ref_audio":"x","metadata":%s}}',
}


def refused(raw: str | bytes) -> DuplexError:
    with pytest.raises(DuplexError) as refusal:
        decode_command(raw)
    return refusal.value


@pytest.fixture
def nothing_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: Any) -> None:
        raise AssertionError("the message was read in full")

    for name in ("_decode_command", "_decode_slowly", "_decode_any", "refuse_free_form"):
        monkeypatch.setattr(codec, name, walk)


@pytest.mark.usefixtures("nothing_is_decoded")
@pytest.mark.parametrize("as_bytes", [False, True], ids=["text", "bytes"])
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_large_event_of_junk_is_refused_unread(frame: str, as_bytes: bool) -> None:
    raw = frame % JUNK
    error = refused(raw.encode() if as_bytes else raw)
    assert (error.code, error.event_id) == ("event_too_large", "z")
    assert str(MAX_PLAIN_EVENT_BYTES) in error.message or str(MAX_EVENT_VALUES) in error.message


def test_media_may_be_15_mib() -> None:
    frame = '{"type":"input_audio_buffer.append","event_id":"z","audio":"%s"}'
    room = (MAX_EVENT_BYTES - len(frame % "")) // 4 * 4
    assert isinstance(decode_command(frame % ("A" * room)), AppendAudio)
    error = refused(frame % ("A" * (room + 4)))
    assert (error.code, error.event_id) == ("event_too_large", "z")
    assert str(MAX_EVENT_BYTES) in error.message

    part = {"type": "input_image", "image_url": "A" * 10_000_000}
    item = {"type": "conversation.item.create", "item": {"content": [part]}}
    assert isinstance(decode_command(json.dumps(item)), CreateItem)


BESIDE_MEDIA = {
    "a voice": '{"type":"session.update","session":{"ref_audio":"%s","instructions":"%s"}}',
    "a voice of a flat session": '{"type":"session.update","ref_audio":"%s","instructions":"%s"}',
    "a voice in extra_body": (
        '{"type":"session.update","session":{"extra_body":{"ref_audio":"%s"},"instructions":"%s"}}'
    ),
    "a voice for speech alone": (
        '{"type":"session.update",'
        '"session":{"extra_body":{"tts_ref_audio":"%s"},"instructions":"%s"}}'
    ),
    "a picture to answer": (
        '{"type":"response.create","response":{"input":'
        '[{"content":[{"type":"input_image","image_url":"%s"}]}],"instructions":"%s"}}'
    ),
    "a signalled picture": (
        '{"type":"turn.signal","event":"conversation.item.create","payload":{"item":{"content":'
        '[{"type":"input_image","image_url":"%s"},{"type":"input_text","text":"%s"}]}}}'
    ),
    "a signalled sound by the other name": (
        '{"type":"signal_turn","event":"conversation.item.create","payload":{"item":{"content":'
        '[{"type":"input_audio","audio":"%s"},{"type":"input_text","text":"%s"}]}}}'
    ),
    "a signalled voice": (
        '{"type":"turn.signal","event":"session.update",'
        '"payload":{"ref_audio":"%s","instructions":"%s"}}'
    ),
}


@pytest.mark.parametrize("frame", BESIDE_MEDIA.values(), ids=BESIDE_MEDIA)
def test_media_may_be_large_but_not_what_is_beside_them(frame: str) -> None:
    decode_command(frame % ("A" * 4_000_000, "x" * 1000))
    error = refused(frame % ("A" * 4_000_000, "x" * MAX_PLAIN_EVENT_BYTES))
    assert error.code == "event_too_large"
    error = refused(frame % ("A" * MAX_EVENT_BYTES, "x"))
    assert (error.code, str(MAX_EVENT_BYTES) in error.message) == ("event_too_large", True)


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"turn.signal","event":"nod","payload":{"ref_audio":"%s"}}',
        '{"type":"response.create","response":{"ref_audio":"%s"}}',
        '{"type":"response.create","response":{"input":"%s"}}',
        '{"type":"session.update","session":{"ref_audio":["%s"]}}',
    ],
)
def test_where_no_media_belong_there_is_no_room_for_them(frame: str) -> None:
    assert refused(frame % ("A" * MAX_PLAIN_EVENT_BYTES)).code == "event_too_large"


@pytest.mark.parametrize("junk", ["[" * 100, '"', "\ud800", "1e999,"], ids=ascii)
def test_a_large_event_that_cannot_be_read_is_too_large(junk: str) -> None:
    error = refused(junk * (MAX_PLAIN_EVENT_BYTES + 1))
    assert (error.code, error.event_id) == ("event_too_large", None)


@pytest.mark.parametrize(("levels", "fits"), [(62, True), (63, False), (5000, False)])
def test_a_clients_own_objects_nest_so_far(levels: int, fits: bool) -> None:
    frame = '{"type":"turn.signal","event":"x","event_id":"z","payload":{"k":%s}}'
    raw = frame % ("[" * levels + "1" + "]" * levels)
    if fits:
        decode_command(raw)
    else:
        error = refused(raw)
        assert error.code in ("bad_event", "invalid_json")


@pytest.mark.parametrize("number", [10**30, 2**64, -(2**63) - 1])
@pytest.mark.parametrize(
    ("event", "param"),
    [
        (
            lambda n: {
                "type": "session.update",
                "session": {"tools": [{"parameters": {"maximum": n}}]},
            },
            "session.tools[0].parameters.maximum",
        ),
        (
            lambda n: {"type": "session.update", "session": {"tool_choice": {"a": n}}},
            "session.tool_choice.a",
        ),
        (
            lambda n: {"type": "response.create", "response": {"metadata": {"a": [1, n]}}},
            "response.metadata.a[1]",
        ),
        (
            lambda n: {"type": "turn.signal", "event": "x", "payload": {"a": n}},
            "payload.a",
        ),
    ],
    ids=["tools", "choice", "metadata", "payload"],
)
def test_an_integer_beyond_64_bits_is_named(event: Any, param: str, number: int) -> None:
    error = refused(json.dumps({**event(number), "event_id": "z"}))
    assert (error.code, error.param, error.event_id) == ("bad_event", param, "z")


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63)])
def test_an_integer_of_64_bits_passes(number: int) -> None:
    raw = json.dumps({"type": "turn.signal", "event": "x", "payload": {"a": number}})
    assert json.loads(codec.encode_command(decode_command(raw)))["payload"] == {"a": number}


@pytest.mark.parametrize("wire_type", ["playback.ack", "audio.playback_ack", "nope"])
def test_a_number_beyond_a_double_keeps_the_event_id(wire_type: str) -> None:
    error = refused(f'{{"type":"{wire_type}","event_id":"E","played_ms":1e999}}')
    assert (error.code, error.event_id, error.param) == ("bad_event", "E", "played_ms")
