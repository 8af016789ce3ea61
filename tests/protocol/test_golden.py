"""The contract's own examples, as files: the wire format may grow but never differ from them.

Two rules. A client example decodes into a command that holds every value of the example, under
the canonical field name. A server example decodes into an event of ours and encodes again to an
object that says everything the example says; keys that the example lacks may be there too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from omniduplex.protocol.duplex import (
    BargeIn,
    DuplexCommand,
    DuplexEvent,
    UnknownEvent,
    decode_command,
    decode_event,
    encode_event,
)
from omniduplex.protocol.duplex.codec import FIELD_ALIASES

GOLDEN = Path(__file__).parent / "golden"
CLIENT = sorted((GOLDEN / "client").glob("*.json"))
SERVER = sorted((GOLDEN / "server").glob("*.json"))
# Flat on the wire, but the same event once read; and a signal that is another command.
FLAT_ERROR, SIGNAL = "error-flat", "turn.signal-barge_in"
# Keys the OpenAI models require and the contract's examples leave out: ours always sends them.
ALWAYS_SENT: dict[str, dict[str, Any]] = {
    "conversation.item.input_audio_transcription.completed": {
        "usage": {"type": "duration", "seconds": 1.8}
    },
    "response.function_call_arguments.done": {"name": "get_weather"},
}


def assert_says(actual: Any, expected: Any, path: str = "$") -> None:
    """Check that `actual` holds all of `expected`; objects may hold more."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), path
        for key, value in expected.items():
            assert key in actual, f"{path}.{key} is missing"
            assert_says(actual[key], value, f"{path}.{key}")
    elif isinstance(expected, list):
        assert isinstance(actual, list), path
        assert len(actual) == len(expected), path
        for index, value in enumerate(expected):
            assert_says(actual[index], value, f"{path}[{index}]")
    else:
        assert actual == expected, path
        assert isinstance(actual, bool) == isinstance(expected, bool), path


def tags(union: Any) -> set[str]:
    return {member.__struct_config__.tag for member in get_args(union)}


def test_the_examples_cover_the_vocabulary() -> None:
    types = {json.loads(path.read_text())["type"] for path in (*CLIENT, *SERVER)}
    # `turn.event` is in the contract's table without an example; the others it does not have.
    without_example = {
        "turn.event",
        "session.expiring",
        "conversation.created",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.failed",
        "input_audio_buffer.timeout_triggered",
        "output_audio_buffer.started",
        "output_audio_buffer.stopped",
    }
    assert types == (tags(DuplexCommand) | tags(DuplexEvent)) - without_example


@pytest.mark.parametrize("path", CLIENT, ids=lambda path: path.stem)
def test_a_client_example_decodes_with_all_its_fields(path: Path) -> None:
    example = json.loads(path.read_text())
    command = decode_command(path.read_bytes())
    if path.stem == SIGNAL:
        assert command == BargeIn()
        return
    aliases = FIELD_ALIASES.get(example["type"], {})
    expected = {aliases.get(name, name): value for name, value in example.items()}
    # A client's own remarks on its voice activity stay its own.
    if "vad" in expected:
        known = msgspec.json.decode(msgspec.json.encode(command))["vad"]
        expected["vad"] = {key: expected["vad"][key] for key in known}
        assert set(known) == {"is_speech", "speech_probability"}
    assert_says(json.loads(msgspec.json.encode(with_defaults(command))), expected)


def with_defaults(command: DuplexCommand) -> dict[str, Any]:
    """Show a command with the values it does not encode because they go without saying."""
    shown = {name: getattr(command, name) for name in command.__struct_fields__}
    if "item" in shown:
        item = shown["item"]
        shown["item"] = {name: getattr(item, name) for name in item.__struct_fields__}
    return {"type": command.__struct_config__.tag, **shown}


@pytest.mark.parametrize("path", SERVER, ids=lambda path: path.stem)
def test_a_server_example_is_what_we_would_send(path: Path) -> None:
    example = json.loads(path.read_text())
    example |= ALWAYS_SENT.get(example["type"], {})
    event = decode_event(json.dumps(example))
    assert not isinstance(event, UnknownEvent)

    message = json.loads(encode_event(event, event_id="event_1", seq=1))
    if path.stem == FLAT_ERROR:
        assert (message["error"]["message"], message["error"]["code"]) == (
            example["error"],
            example["code"],
        )
        return
    assert_says(message, example | {"event_id": "event_1", "server_event_seq": 1})
