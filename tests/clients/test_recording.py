"""A recording is read as it was written, and holds no secret."""

from __future__ import annotations

import hashlib
import io
import json
import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from tests.protocol.duplex.test_codec_fuzz import any_message

from omniduplex.clients.recording import (
    CloseFrame,
    Conversation,
    ConversationWriter,
    Entry,
    Header,
    RecordingError,
    read_conversation,
    redact,
    redact_url,
)

HEADER = Header(
    created="2026-01-02T03:04:05.678+00:00",
    url="/v1/duplex?model=m",
    model="m",
    dialect="duplex",
    server="0.1.0",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("ab\n☃"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz"), inner, max_size=3),
)


def written(*messages: str | bytes) -> list[Entry]:
    """Entries of a file to which these came from a client."""
    file = io.BytesIO()
    writer = ConversationWriter(file, HEADER)
    for message in messages:
        writer.message(0.5, "c2s", message)
    lines = file.getvalue().splitlines()
    return [msgspec.json.decode(line, type=Entry) for line in lines[1:]]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        writer = ConversationWriter(file, HEADER)
        writer.message(0.0, "s2c", '{"type": "session.created"}')
        writer.message(0.25, "c2s", "{")
        writer.message(0.5, "c2s", b"\x00\xff")
        writer.close(1.0, "s2c", CloseFrame(code=1001, reason="shutdown"))

    end = Entry(t=1.0, dir="s2c", close=CloseFrame(code=1001, reason="shutdown"))
    conversation = read_conversation(path)
    assert conversation == Conversation(
        HEADER,
        (
            Entry(t=0.0, dir="s2c", event={"type": "session.created"}),
            Entry(t=0.25, dir="c2s", text="{"),
            Entry(t=0.5, dir="c2s", binary=b"\x00\xff"),
            end,
        ),
    )
    assert conversation.end == end


@given(st.dictionaries(st.text("xyz"), JSON, max_size=4))
def test_an_event_without_secrets_stays_what_it_is(event: dict[str, object]) -> None:
    (entry,) = written(json.dumps(event, indent=1))

    assert entry.event == event


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session.created", "resume_token": "SECRET"},
        {"session": {"tools": [{"type": "mcp", "authorization": "SECRET"}]}},
        {"session": {"tools": [{"headers": {"x-key": "SECRET", "more": ["SECRET"]}}]}},
        {"type": "turn.signal", "payload": {"session": {"extra_body": {"api_key": "SECRET"}}}},
        {"session": {"ref_audio": "SECRET"}},
    ],
)
def test_no_secret_is_written_whole_or_cut(event: dict[str, object]) -> None:
    text = json.dumps(event)

    for raw in (text, text[:-1], text.replace("SECRET", 'S\\"ECRET')[:-1], text + "}"):
        (entry,) = written(raw)
        assert "ECRET" not in msgspec.json.encode(entry).decode()


def test_a_voice_sample_is_known_again_by_its_digest() -> None:
    digest = hashlib.sha256(b"AAAA").hexdigest()

    assert redact({"session": {"ref_audio": "AAAA"}}) == {
        "session": {"ref_audio": f"sha256:{digest}"}
    }


def test_a_tool_may_have_a_parameter_named_like_a_secret() -> None:
    tool = {"parameters": {"properties": {"token": {"type": ["string"], "minLength": 1}}}}
    hidden = redact(tool)["parameters"]["properties"]["token"]

    assert (hidden["type"], hidden["minLength"]) == (["redacted"], 1)


def test_a_url_keeps_what_is_known_to_be_harmless() -> None:
    url = "wss://host/v1/realtime?model=a/b&duplex=1&key=SECRET&resume="

    assert redact_url(url) == "/v1/realtime?model=a%2Fb&duplex=1&key=redacted&resume="


@pytest.mark.parametrize("depth", [100, 500, 950, 100_000])
def test_nesting_of_any_depth_is_written(depth: int) -> None:
    text = f'{{"a":{"[" * depth}{"]" * depth}}}'
    (entry,) = written(text)

    assert entry.text == text or entry.event is not UNSET


def test_whatever_a_client_sends_can_be_written() -> None:
    rng = random.Random(3)
    messages = [any_message(rng).encode("utf-8", "ignore").decode() for _ in range(500)]

    assert len(written(*messages)) == len(messages)


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ([b'{"format": "something else"}'], 1),
        ([b"{}"], 1),
        ([msgspec.json.encode(HEADER), b"{"], 2),
        ([msgspec.json.encode(HEADER), b'{"t": 0, "dir": "c2s"}'], 2),
        ([msgspec.json.encode(HEADER), b'{"t": 0, "dir": "up", "text": ""}'], 2),
        ([msgspec.json.encode(HEADER), b'{"t": 0, "dir": "c2s", "text": "", "event": {}}'], 2),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, lines: list[bytes], number: int) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\n".join(lines))

    with pytest.raises(RecordingError, match=rf"bad\.jsonl, line {number}: "):
        read_conversation(path)


def test_an_empty_file_is_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()

    with pytest.raises(RecordingError, match="is empty"):
        read_conversation(path)
