"""The codec: what comes in as text, what goes out as text, and how a refusal names itself."""

from __future__ import annotations

import base64
import json
from typing import Any, cast, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocol.duplex.strategies import instances

from omniduplex.protocol.duplex import (
    ERROR_KINDS,
    MAX_PLAIN_EVENT_BYTES,
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    CancelResponse,
    CloseSession,
    Commit,
    CreateItem,
    DeleteItem,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    ErrorEvent,
    EventAck,
    InputCommit,
    ItemInput,
    SessionPatch,
    SignalTurn,
    UnknownEvent,
    UpdateSession,
    decode_command,
    decode_event,
    encode_command,
    encode_event,
    error_event,
)
from omniduplex.protocol.duplex.codec import ROUTED_SIGNALS, check_command

COMMANDS = get_args(DuplexCommand)
EVENTS = get_args(DuplexEvent)
AUDIO = base64.b64encode(b"\x01\x02\x03\x04").decode()


def wire(**fields: Any) -> str:
    return json.dumps(fields)


def append(**fields: Any) -> AppendAudio:
    command = decode_command(wire(type="input_audio_buffer.append", **fields))
    assert isinstance(command, AppendAudio)
    return command


def refused(raw: str | bytes) -> DuplexError:
    with pytest.raises(DuplexError) as refusal:
        decode_command(raw)
    return refusal.value


def test_the_vocabulary_is_whole() -> None:
    official = {
        "conversation.created",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.failed",
        "input_audio_buffer.timeout_triggered",
        "output_audio_buffer.started",
        "output_audio_buffer.stopped",
    }
    added = official | {"session.expiring"}  # which announces an end beforehand
    tags = {event.__struct_config__.tag for event in EVENTS}

    assert len(COMMANDS) == 21
    assert added <= tags
    assert len(tags - added) == len(EVENTS) - len(added) == 42


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("struct", COMMANDS, ids=lambda struct: struct.__name__)
def test_every_command_survives_the_wire(struct: Any, data: st.DataObject) -> None:
    command = data.draw(instances(struct))
    if isinstance(command, SignalTurn) and command.event in ROUTED_SIGNALS:
        return
    assert decode_command(encode_command(command)) == command


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("struct", COMMANDS, ids=lambda struct: struct.__name__)
def test_a_command_that_a_program_made_is_the_same_once_checked(
    struct: Any, data: st.DataObject
) -> None:
    command = data.draw(instances(struct))
    assert check_command(command) == command


@pytest.mark.parametrize(
    ("command", "code", "param"),
    [
        (AppendAudio(audio=cast(Any, "abcd")), "bad_event", "audio"),
        (AppendAudio(audio=b"", format=cast(Any, 3)), "unsupported_audio_format", "format"),
        (DeleteItem(item_id=cast(Any, 4)), "missing_item_id", "item_id"),
        (CreateItem(item=ItemInput(role=cast(Any, "bot"))), "bad_event", "item.role"),
        (
            UpdateSession(session=SessionPatch(temperature=cast(Any, "hot"))),
            "bad_event",
            "session.temperature",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, msgspec.Struct) else value,
)
def test_a_command_of_wrong_types_is_refused_by_its_field(
    command: DuplexCommand, code: str, param: str
) -> None:
    named = msgspec.structs.replace(command, event_id="event_1")
    with pytest.raises(DuplexError) as refusal:
        check_command(named)
    found = refusal.value
    assert (found.code, found.param, found.event_id) == (code, param, "event_1")
    assert f"({param})" in str(found)


def test_a_program_may_use_what_means_the_same() -> None:
    samples = bytearray(b"abcd")
    append = check_command(
        AppendAudio(audio=cast(Any, samples), sample_rate_hz=cast(Any, np.int64(8000)))
    )
    samples[:] = b"next"  # a buffer that is used again
    assert append == AppendAudio(audio=b"abcd", sample_rate_hz=8000)
    assert check_command(AppendAudio(audio=cast(Any, memoryview(b"abcd")))) == AppendAudio(
        audio=b"abcd"
    )
    assert check_command(AckPlayback(played_ms=np.float64(1.5))) == AckPlayback(played_ms=1.5)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ({"type": "input_audio_buffer.commit"}, "input_audio_buffer.commit"),
        (Commit, "Commit"),
        (None, "None"),
        (AppendAudio(audio=cast(Any, np.zeros(4))), r"numpy\.ndarray"),
    ],
)
def test_what_is_no_command_is_a_mistake_of_the_program(command: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        check_command(command)


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("struct", EVENTS, ids=lambda struct: struct.__name__)
def test_every_event_survives_the_wire(struct: Any, data: st.DataObject) -> None:
    event = data.draw(instances(struct))
    text = encode_event(event, event_id="event_1", seq=7)

    stamped = msgspec.structs.replace(event, event_id="event_1", server_event_seq=7)
    assert decode_event(text) == stamped


def test_an_event_without_a_number_has_no_key_for_it() -> None:
    event = error_event(DuplexError("bad_event", "no"))
    message = json.loads(encode_event(event, event_id="event_1", seq=None))
    assert message["event_id"] == "event_1"
    assert "server_event_seq" not in message


@pytest.mark.parametrize("name", ["input_text.append", "push_text"])
def test_text_has_two_other_names(name: str) -> None:
    assert decode_command(wire(type=name, text="hi")) == AppendText(text="hi")


@pytest.mark.parametrize("name", ["close", "close_session"])
def test_closing_has_two_other_names(name: str) -> None:
    assert decode_command(wire(type=name)) == CloseSession()


def test_signals_and_acknowledgements_have_another_name() -> None:
    assert decode_command(wire(type="signal_turn", event="nod")) == SignalTurn(event="nod")
    ack = decode_command(wire(type="audio.playback_ack", played_ms=20, truncate=True))
    assert ack == AckPlayback(played_ms=20, truncate=True)


@pytest.mark.parametrize(
    ("alias", "name", "value"),
    [
        ("input_audio_format", "format", "g711_ulaw"),
        ("sample_rate", "sample_rate_hz", 24000),
        ("speech", "is_speech", False),
        ("audio_duration_ms", "duration_ms", 200),
        ("overlap", "overlap_action", "drop"),
        ("text", "transcript", "hello"),
    ],
)
def test_an_append_loses_no_field_by_its_other_name(alias: str, name: str, value: Any) -> None:
    command = append(audio=AUDIO, **{alias: value})
    assert getattr(command, name) == value
    assert command.audio == b"\x01\x02\x03\x04"


@pytest.mark.parametrize(
    "action",
    [
        *("barge_in", "interrupt", "cancel"),
        *("listen", "continue", "continue_output", "ack"),
        *("drop", "ignore", "silence"),
    ],
)
def test_an_overlap_action_is_one_of_the_contracts_words(action: str) -> None:
    assert append(audio=AUDIO, overlap_action=action).overlap_action == action


@pytest.mark.parametrize("name", ["overlap_action", "overlap"])
@pytest.mark.parametrize("action", ["shout", "", "BARGE_IN", 1, ["drop"]])
def test_another_overlap_action_is_refused_by_name(name: str, action: Any) -> None:
    with pytest.raises(DuplexError) as refusal:
        append(audio=AUDIO, event_id="evt_1", **{name: action})
    error = refusal.value
    assert (error.code, error.param, error.event_id) == ("bad_event", name, "evt_1")


def test_delta_is_audio() -> None:
    assert append(delta=AUDIO).audio == b"\x01\x02\x03\x04"


def test_the_canonical_name_wins_over_its_alias() -> None:
    assert append(audio=AUDIO, format="pcm16", input_audio_format="g711_ulaw").format == "pcm16"


def test_a_null_leaves_the_field_to_its_alias() -> None:
    assert append(audio=AUDIO, format=None, input_audio_format="g711_ulaw").format == "g711_ulaw"


def test_a_field_that_nobody_knows_is_passed_over() -> None:
    assert append(audio=AUDIO, colour="blue") == AppendAudio(audio=b"\x01\x02\x03\x04")


@pytest.mark.parametrize("name", ["create_response", "response_create"])
def test_both_commits_take_both_names_of_the_wish_for_an_answer(name: str) -> None:
    commit = decode_command(wire(type="input_audio_buffer.commit", **{name: False}))
    assert commit == Commit(response_create=False)
    assert decode_command(wire(type="input.commit", **{name: False})) == InputCommit(
        response_create=False
    )


def test_a_session_update_may_be_flat() -> None:
    command = decode_command(
        wire(type="session.update", event_id="evt_1", model="m", turn_detection=None)
    )
    assert isinstance(command, UpdateSession)
    assert command.event_id == "evt_1"
    assert (command.session.model, command.session.turn_detection) == ("m", None)
    assert command.session.type is msgspec.UNSET


def test_a_whole_number_may_be_written_as_a_float() -> None:
    assert decode_command('{"type":"session.event_ack","server_event_seq":48.0}') == EventAck(
        server_event_seq=48
    )


@pytest.mark.parametrize(
    ("event", "payload", "command"),
    [
        ("barge_in", {"source": "client_vad"}, BargeIn(event_id="e")),
        ("response.cancel", {"response_id": "r"}, CancelResponse(event_id="e", response_id="r")),
        ("conversation.item.delete", {"item_id": "i"}, DeleteItem(event_id="e", item_id="i")),
        ("playback_ack", {"played_ms": 80}, AckPlayback(event_id="e", played_ms=80)),
        ("close", {}, CloseSession(event_id="e")),
        ("close", {"reason": "bye"}, CloseSession(event_id="e", reason="bye")),
        ("timeout", {}, CloseSession(event_id="e", reason="timeout")),
    ],
)
def test_some_turn_signals_are_other_commands(
    event: str, payload: dict[str, Any], command: DuplexCommand
) -> None:
    raw = wire(type="turn.signal", event_id="e", event=event, payload=payload)
    assert decode_command(raw) == command


def test_a_turn_signal_can_carry_a_session_patch() -> None:
    raw = wire(type="turn.signal", event="session.update", payload={"temperature": 0.5})
    command = decode_command(raw)
    assert isinstance(command, UpdateSession)
    assert command.session.temperature == 0.5


@pytest.mark.parametrize(
    "raw", ["", "{", "nonsense", '{"type":"x"} y', '{"a":NaN}', b'{"a":"\xff"}']
)
def test_what_is_not_json(raw: str | bytes) -> None:
    assert refused(raw).code == "invalid_json"


@pytest.mark.parametrize("raw", ["[]", "3", "null", '"x"', "{}", '{"type":7}', '{"type":null}'])
def test_what_is_json_but_no_event(raw: str) -> None:
    assert refused(raw).code == "bad_event"


@pytest.mark.parametrize("name", ["push_chunk", "input.audio.append", "session_close", "x" * 9999])
def test_an_unknown_event_is_named_shortly_and_its_id_comes_back(name: str) -> None:
    error = refused(wire(type=name, event_id="evt_9"))
    assert (error.code, error.event_id) == ("unknown_event", "evt_9")
    assert len(error.message) < 300


def test_an_event_id_that_is_no_string_is_not_echoed() -> None:
    error = refused(wire(type="barge_in", event_id=9))
    assert (error.code, error.param, error.event_id) == ("bad_event", "event_id", None)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"type": "input_audio_buffer.append", "audio": "@@@"}, "bad_audio", "audio"),
        ({"type": "input_audio_buffer.append", "delta": "AAA"}, "bad_audio", "delta"),
        ({"type": "input_audio_buffer.append", "audio": 7}, "bad_event", "audio"),
        (
            {"type": "input_audio_buffer.append", "input_audio_format": 7},
            "unsupported_audio_format",
            "input_audio_format",
        ),
        (
            {"type": "input_audio_buffer.append", "video_frames": [7]},
            "invalid_video_frames",
            "video_frames[0]",
        ),
        ({"type": "playback.ack"}, "bad_event", "played_ms"),
        ({"type": "playback.ack", "played_ms": "1"}, "bad_event", "played_ms"),
        ({"type": "session.event_ack"}, "invalid_event_ack", "server_event_seq"),
        ({"type": "session.event_ack", "server_event_seq": 1.5}, "invalid_event_ack", None),
        ({"type": "session.resume", "session_id": 1}, "invalid_session_resume", None),
        ({"type": "conversation.item.delete"}, "missing_item_id", "item_id"),
        ({"type": "conversation.item.create"}, "bad_event", "item"),
        ({"type": "conversation.item.create", "item": {"type": "x"}}, "bad_event", "item.type"),
        ({"type": "session.update", "session": None}, "bad_event", "session"),
        ({"type": "session.update", "session": 3}, "bad_event", "session"),
        (
            {"type": "session.update", "session": {"audio": {"input": {"format": 5}}}},
            "unsupported_audio_format",
            "session.audio.input.format",
        ),
        (
            {"type": "session.update", "session": {"input_audio_format": []}},
            "unsupported_audio_format",
            "session.input_audio_format",
        ),
        (
            {"type": "session.update", "session": {"turn_detection": {"sensitivity": 1}}},
            "unsupported_turn_detection",
            "session.turn_detection.sensitivity",
        ),
        (
            {"type": "session.update", "session": {"temperature": "hot"}},
            "bad_event",
            "session.temperature",
        ),
        ({"type": "turn.signal"}, "bad_event", "event"),
        (
            {"type": "turn.signal", "event": "conversation.item.delete"},
            "missing_item_id",
            "item_id",
        ),
    ],
    ids=str,
)
def test_a_refusal_names_its_code_the_field_and_the_event(
    fields: dict[str, Any], code: str, param: str | None
) -> None:
    error = refused(wire(**fields, event_id="evt_5"))
    assert (error.code, error.event_id) == (code, "evt_5")
    if param is not None:
        assert error.param == param


def test_bad_audio_inside_an_item_is_bad_audio() -> None:
    item = {"content": [{"type": "input_audio", "audio": "@"}]}
    error = refused(wire(type="conversation.item.create", item=item))
    assert (error.code, error.param) == ("bad_audio", "item.content[0].audio")


def test_the_size_limit_counts_utf8_bytes() -> None:
    frame = '{"type":"input.text.append","text":"%s"}'
    room = MAX_PLAIN_EVENT_BYTES - len(frame % "")
    assert isinstance(decode_command(frame % ("x" * room)), AppendText)
    assert refused(frame % ("x" * (room + 1))).code == "event_too_large"
    assert isinstance(decode_command(frame % ("é" * (room // 2))), AppendText)
    assert refused(frame % ("é" * (room // 2 + 1))).code == "event_too_large"
    assert refused((frame % ("x" * (room + 1))).encode()).code == "event_too_large"


def test_a_command_says_nothing_that_goes_without_saying() -> None:
    assert json.loads(encode_command(Commit())) == {"type": "input_audio_buffer.commit"}
    item = decode_command(wire(type="conversation.item.create", item={"role": "assistant"}))
    assert isinstance(item, CreateItem)
    assert json.loads(encode_command(item)) == {
        "type": "conversation.item.create",
        "item": {"role": "assistant"},
    }


def test_a_null_in_a_session_patch_is_said() -> None:
    command = decode_command(wire(type="session.update", session={"turn_detection": None}))
    assert json.loads(encode_command(command))["session"] == {"turn_detection": None}


@pytest.mark.parametrize(
    "raw",
    [
        '{"type":"connection.resumed","attempt":2}',
        '{"type":"duplex.novelty","event":{}}',
        '{"type":"session.closed","reason":7}',
    ],
)
def test_an_event_from_elsewhere_stays_as_it_came(raw: str) -> None:
    message = json.loads(raw)
    assert decode_event(raw) == UnknownEvent(type=message["type"], raw=message)


@pytest.mark.parametrize(("raw", "code"), [("{", "invalid_json"), ("[]", "bad_event")])
def test_a_server_message_that_is_no_event(raw: str, code: str) -> None:
    with pytest.raises(DuplexError) as refusal:
        decode_event(raw)
    assert refusal.value.code == code


def test_an_error_quotes_no_client_at_length() -> None:
    said = error_event(DuplexError("item_not_found", f"no item {'x' * 100_000!r}")).error.message

    assert said.startswith("no item 'xxx")
    assert len(said) < 500


def test_a_flat_error_reads_like_any_other() -> None:
    event = decode_event('{"type":"error","error":"Full.","code":"resource_exhausted"}')
    assert isinstance(event, ErrorEvent)
    assert (event.error.code, event.error.type) == ("resource_exhausted", "rate_limit_error")


@pytest.mark.parametrize("code", sorted(ERROR_KINDS))
def test_every_refusal_carries_its_class_and_whether_to_retry(code: str) -> None:
    error = error_event(DuplexError(code, "No.", param="p", event_id="e")).error
    assert (error.type, error.retryable) == ERROR_KINDS[code][:2]
    assert (error.code, error.message, error.param, error.event_id) == (code, "No.", "p", "e")


def test_a_code_that_only_a_models_plugin_knows_refuses_the_request() -> None:
    error = error_event(DuplexError("my_models_own", "No.", param="session.mine")).error
    assert (error.type, error.code, error.retryable) == (
        "invalid_request_error",
        "my_models_own",
        False,
    )
    assert error.param == "session.mine"
