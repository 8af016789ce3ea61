"""Whatever a client sends, the codec answers with a command or a named refusal."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import pytest

from omniduplex.protocol.duplex import (
    ERROR_KINDS,
    AudioPatch,
    DuplexCommand,
    DuplexError,
    InputAudioPatch,
    ItemInput,
    ResponseOptions,
    SessionPatch,
    TurnDetectionPatch,
    decode_command,
    encode_command,
)
from omniduplex.protocol.duplex.codec import FIELD_ALIASES, TYPE_ALIASES

SEEDS = range(10)
# Continuous integration reads 100,000 messages, a laptop fewer of the same.
MESSAGES_PER_SEED = 10_000 if os.environ.get("CI") else 600
REQUIRED = {
    command.__struct_config__.tag: [
        field.name for field in msgspec.structs.fields(command) if field.required
    ]
    for command in get_args(DuplexCommand)
}
PARTS = (SessionPatch, AudioPatch, InputAudioPatch, TurnDetectionPatch, ResponseOptions, ItemInput)
FIELDS = sorted(
    {name for command in get_args(DuplexCommand) for name in command.__struct_fields__}
    | {name for part in PARTS for name in part.__struct_fields__}
    | {alias for aliases in FIELD_ALIASES.values() for alias in aliases}
    | {"session", "turn_detection", "input_audio_format", "type", "colour"}
)
# JSON texts, not values: most of these no encoder would write.
HOSTILE = (
    "NaN", "Infinity", "1e999", "-1e999", "-0.0", "1.0", "1e3", "01", "+1", "0x1", "'x'", "undef",
    str(2**63), str(2**64), str(-(2**70)), "9" * 5000, "0." + "1" * 5000, '"\\ud800"', '"\\udc00x"',
    '"\\u0000"', '"\\uD83D\\uDE00"', '"' + "x" * 100_000 + '"', "[" * 10_000 + "]" * 10_000,
    '{"a":' * 10_000 + "1" + "}" * 10_000, "[" * 10_000, "", "{", '"', "\x00", "\ufeff", "//x",
)  # fmt: skip


def any_value(rng: random.Random, depth: int = 0) -> str:
    """Return the text of a value that may or may not fit wherever it lands."""
    roll = rng.random()
    if roll < 0.15:
        return rng.choice(HOSTILE)
    if roll < 0.35 and depth < 4:
        return any_object(rng, depth + 1)
    if roll < 0.45 and depth < 4:
        inner = [any_value(rng, depth + 1) for _ in range(rng.randrange(4))]
        return f"[{','.join(inner)}]"
    plain: list[Any] = [
        None, True, False, 0, -1, 7, 0.25, "", "pcm16", "audio/pcm", "server_vad", "root", "@@",
        "barge_in", "session.update", "conversation.item.create", "snow ☃", 24000, 1e300,
        base64.b64encode(rng.randbytes(rng.randrange(9))).decode(),
    ]  # fmt: skip
    return json.dumps(rng.choice(plain))


def any_object(rng: random.Random, depth: int = 0, *, also: Sequence[str] = ()) -> str:
    """Return an object with some of our field names, now and then the same one twice."""
    names = [*also, *rng.choices(FIELDS, k=rng.randrange(5))]
    members = [f"{json.dumps(name)}:{any_value(rng, depth)}" for name in names]
    return f"{{{','.join(members)}}}"


def any_message(rng: random.Random) -> str:
    """Return a message that is mostly an event, and cut or scrambled at times."""
    kind = rng.choice([*REQUIRED, *TYPE_ALIASES, "nonsense"])
    tag = f'"type":{json.dumps(kind) if rng.random() < 0.95 else any_value(rng)}'
    required = REQUIRED.get(TYPE_ALIASES.get(kind, kind), ())
    body = any_object(rng, also=required)[1:-1]
    text = f"{{{tag},{body}}}" if rng.random() < 0.7 else f"{{{body},{tag}}}"
    text = text.replace("{,", "{").replace(",}", "}")
    roll = rng.random()
    if roll < 0.05:
        return text[: rng.randrange(len(text) + 1)]
    if roll < 0.1:
        cut = rng.randrange(len(text))
        return text[:cut] + chr(rng.choice([0, 34, 92, 123, 0xD800, 0x1F600])) + text[cut:]
    return text


def outcome(raw: str | bytes) -> DuplexCommand | DuplexError:
    """Return what the codec makes of a message; anything but these two fails the test."""
    try:
        return decode_command(raw)
    except DuplexError as error:
        return error


@pytest.mark.parametrize("seed", SEEDS)
def test_only_commands_and_named_refusals_come_out(seed: int) -> None:
    rng = random.Random(seed)
    refusals = 0
    for _ in range(MESSAGES_PER_SEED):
        text = any_message(rng)
        result = outcome(text if rng.random() < 0.8 else text.encode("utf-8", "surrogatepass"))
        if isinstance(result, DuplexError):
            refusals += 1
            assert result.code in ERROR_KINDS
            assert len(result.message) < 400
            assert len(result.param or "") <= 201
            assert result.event_id is None or isinstance(result.event_id, str)
        else:
            assert decode_command(encode_command(result)) == result
    assert 0.05 < refusals / MESSAGES_PER_SEED < 0.95


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: ascii(text[:12]))
@pytest.mark.parametrize("place", ["%s", '{"type":%s}', '{"type":"barge_in","event_id":%s}'])
def test_hostile_values_in_the_envelope(place: str, hostile: str) -> None:
    result = outcome(place % hostile)
    if isinstance(result, DuplexError):
        assert result.code in ("invalid_json", "bad_event", "unknown_event")
    else:
        assert isinstance(result.event_id, str)


@pytest.mark.parametrize(
    "text",
    ['{"type":"barge_in","event_id":"\ud800"}', "\ud800", '{"type":"\udfff"}'],
    ids=ascii,
)
def test_a_lone_surrogate_is_not_text(text: str) -> None:
    with pytest.raises(DuplexError) as refusal:
        decode_command(text)
    assert refusal.value.code == "invalid_json"


def test_a_name_is_quoted_briefly_even_if_every_character_of_it_has_to_be_escaped() -> None:
    refusal = outcome('{"type":"%s"}' % ("\x7f" * 300))

    assert isinstance(refusal, DuplexError)
    assert refusal.code == "unknown_event"
    assert len(refusal.message) < 300


def test_a_number_beyond_all_bounds_that_is_said_again_before_a_text_that_is_none() -> None:
    refusal = outcome(b'{"type":"nonsense","a":1e999,"b":"\xef","a":1,"event_id":"e"}')

    assert isinstance(refusal, DuplexError)
    assert refusal.code == "bad_event"


def test_nesting_without_end_is_refused() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    for raw in (deep, f'{{"type":"response.create","response":{{"metadata":{{"a":{deep}}}}}}}'):
        with pytest.raises(DuplexError) as refusal:
            decode_command(raw)
        assert refusal.value.code in ("invalid_json", "bad_event")


def test_random_bytes_are_refused() -> None:
    rng = random.Random(1)
    for _ in range(500):
        with pytest.raises(DuplexError):
            decode_command(rng.randbytes(rng.randrange(64)))


def test_the_grammar_reaches_every_command() -> None:
    rng = random.Random(2)
    reached = {type(outcome(any_message(rng))) for _ in range(4000)}
    assert reached == {*get_args(DuplexCommand), DuplexError}


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"session.update","session":{"metadata":{"a":%s}}}',
        '{"type":"response.create","response":{"metadata":{"a":%s}}}',
        '{"type":"turn.signal","event":"nod","payload":{"a":%s}}',
    ],
)
def test_what_is_taken_can_be_said_again_on_any_stack(frame: str) -> None:
    assert not isinstance(outcome(frame % ("[" * 60 + "]" * 60)), DuplexError)
    for depth in (65, 500, 950, 980, 990):
        result = outcome(frame % ("[" * depth + "]" * depth))
        assert isinstance(result, DuplexError)
        assert result.code in ("bad_event", "invalid_json")
