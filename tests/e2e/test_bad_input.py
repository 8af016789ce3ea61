"""What a client gets wrong is named, and the session goes on to answer the next question."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from tests.e2e.hearing import understood
from tests.e2e.recordings import recording
from tests.e2e.server import Server
from tests.entrypoints.talk import Talk

pytestmark = [pytest.mark.e2e, pytest.mark.local, pytest.mark.timeout(300)]

PATH = "/v1/realtime?duplex=1&model=omniduplex/local"
QUESTION = recording("capital")
CHUNK_BYTES = 3200


def frame(wire_type: str, **fields: object) -> str:
    return json.dumps({"type": wire_type, "event_id": "e1", **fields})


def append(pcm: bytes, **fields: object) -> str:
    return frame("input_audio_buffer.append", audio=base64.b64encode(pcm).decode(), **fields)


# What is sent, the code that comes back, the event id that comes with it.
BAD: dict[str, tuple[str | bytes, str, str | None]] = {
    "invalid JSON": ('{"event_id": "e1"', "invalid_json", None),
    "a binary frame": (b"{}", "bad_event", None),
    "no object": ("[]", "bad_event", None),
    "no type": ('{"event_id": "e1"}', "bad_event", "e1"),
    "an unknown event": (frame("input_audio_buffer.apend"), "unknown_event", "e1"),
    "an unknown format": (append(b"ab", format="opus"), "unsupported_audio_format", "e1"),
    "no base64": (frame("input_audio_buffer.append", audio="%%%"), "bad_audio", "e1"),
    "not a number": (append(b"\xff" * 4, format="pcm_f32le"), "bad_audio", "e1"),
    "an empty commit": (frame("input_audio_buffer.commit"), "input_audio_buffer_empty", "e1"),
    "nothing to cancel": (frame("response.cancel"), "response_not_active", "e1"),
    "an item that is not there": (
        frame("conversation.item.retrieve", item_id="item_x"),
        "item_not_found",
        "e1",
    ),
    "16 MB": (append(bytes(12 * 1024 * 1024)), "event_too_large", "e1"),
    "16 MiB of sound": (append(bytes(16 * 1024 * 1024)), "event_too_large", "e1"),
    "16 MB of no JSON": ("x" * 16 * 1024 * 1024, "event_too_large", None),
}


@pytest.fixture(scope="module")
def talk(local_server: Server) -> Iterator[Talk]:
    """One session for the whole module: whatever was wrong before, it goes on."""
    with Talk(local_server.http, PATH) as talk:
        talk.until("session.updated")
        yield talk
        # A session whose client just hangs up keeps its place for a while, to be resumed.
        talk.send("session.close")
        talk.ends()


def ask(talk: Talk, pcm: bytes = QUESTION.pcm, chunk_bytes: int = CHUNK_BYTES) -> str:
    """Ask, be answered with audio, and return the question as the server understood it."""
    for start in range(0, len(pcm), chunk_bytes):
        talk.socket.send(append(pcm[start : start + chunk_bytes]))
    talk.send("input_audio_buffer.commit", response_create=False)
    transcript = talk.until("conversation.item.input_audio_transcription.completed")[-1]
    talk.send("response.create", response={"max_output_tokens": 12})
    events = talk.until("response.done")
    kinds = [event["type"] for event in events]
    assert "error" not in kinds
    assert "response.output_audio.delta" in kinds
    assert events[-1]["response"]["status"] in ("completed", "incomplete")
    return str(transcript["transcript"])


def test_every_error_is_named_and_the_next_question_answered(talk: Talk) -> None:
    for name, (wrong, code, event_id) in BAD.items():
        talk.socket.send(wrong)
        error = talk.until("error")[-1]
        assert (error["error"]["code"], error["error"].get("event_id")) == (code, event_id), name
        assert error["event_id"] not in (None, event_id)

    assert understood(QUESTION.words, ask(talk))


def test_samples_cut_in_two_are_put_together(talk: Talk) -> None:
    heard = ask(talk, chunk_bytes=CHUNK_BYTES + 1)
    assert understood(QUESTION.words, heard)


def test_half_a_sample_at_the_end_of_a_turn_is_dropped(talk: Talk) -> None:
    ask(talk, QUESTION.pcm + b"\x01")
    assert understood(QUESTION.words, ask(talk))


def test_half_a_sample_is_no_audio_to_commit(talk: Talk) -> None:
    talk.socket.send(append(b"\x01"))
    talk.socket.send(frame("input_audio_buffer.commit"))
    error = talk.until("error")[-1]["error"]

    assert (error["code"], error["event_id"]) == ("input_audio_buffer_empty", "e1")
    assert understood(QUESTION.words, ask(talk))
