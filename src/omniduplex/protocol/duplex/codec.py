"""JSON in and out: the one place where wire text becomes commands and events, and back."""

from __future__ import annotations

import re
import reprlib
from numbers import Integral, Real
from typing import Any, get_args

import msgspec

from omniduplex.protocol.duplex.commands import (
    AppendAudio,
    CreateResponse,
    DuplexCommand,
    SignalTurn,
    UpdateSession,
)
from omniduplex.protocol.duplex.config import AudioFormat
from omniduplex.protocol.duplex.errors import DuplexError, error_kind
from omniduplex.protocol.duplex.events import DuplexEvent, ErrorDetails, ErrorEvent
from omniduplex.protocol.duplex.formats import parse_append_format
from omniduplex.protocol.duplex.limits import read_event_id, refuse_free_form, refuse_large
from omniduplex.protocol.duplex.loose_shapes import as_spelt, field_kinds, loosened
from omniduplex.protocol.realtime.events import RealtimeEvent

# Client text is quoted back in messages and `param`, but never at length.
_MAX_QUOTED_CHARS = 200
_MAX_MESSAGE_CHARS = 400

TYPE_ALIASES = {
    "input_text.append": "input.text.append",
    "push_text": "input.text.append",
    "signal_turn": "turn.signal",
    "audio.playback_ack": "playback.ack",
    "close": "session.close",
    "close_session": "session.close",
}

FIELD_ALIASES = {
    "input_audio_buffer.append": {
        "delta": "audio",
        "input_audio_format": "format",
        "sample_rate": "sample_rate_hz",
        "speech": "is_speech",
        "audio_duration_ms": "duration_ms",
        "overlap": "overlap_action",
        "text": "transcript",
    },
    "input_audio_buffer.commit": {"create_response": "response_create"},
    "input.commit": {"create_response": "response_create"},
}

# `turn.signal` with one of these names is that command, its fields being the payload.
ROUTED_SIGNALS = {
    "input.cancel": "input.cancel",
    "barge_in": "barge_in",
    "response.cancel": "response.cancel",
    "output_audio_buffer.clear": "output_audio_buffer.clear",
    "session.update": "session.update",
    "conversation.item.create": "conversation.item.create",
    "conversation.item.retrieve": "conversation.item.retrieve",
    "conversation.item.delete": "conversation.item.delete",
    "conversation.item.truncate": "conversation.item.truncate",
    "playback_ack": "playback.ack",
    "close": "session.close",
    "timeout": "session.close",
}

FIELD_CODES = {
    "format": "unsupported_audio_format",
    "input_audio_format": "unsupported_audio_format",
    "output_audio_format": "unsupported_audio_format",
    "response_format": "unsupported_audio_format",
    "turn_detection": "unsupported_turn_detection",
    "video_frames": "invalid_video_frames",
    "max_slice_nums": "invalid_video_frames",
}
COMMAND_CODES = {
    "session.event_ack": "invalid_event_ack",
    "session.resume": "invalid_session_resume",
}

_INVALID_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
# The two ways in which msgspec ends a message: a path, and a field that the path lacks.
_PATH = re.compile(r" - at `\$\.?(?P<path>.*?)`$", re.DOTALL)
_FIELD = re.compile(r"(?:missing required|contains unknown) field `(?P<name>.*?)`$", re.DOTALL)

_COMMANDS: dict[str, Any] = {
    command.__struct_config__.tag: command for command in get_args(DuplexCommand)
}

# What a program may hold samples in.
_BYTES = (bytes, bytearray, memoryview)

# Commands with parts of any shape.
_FREE_FORM = frozenset({UpdateSession, CreateResponse, SignalTurn})
_COMMAND_CLASSES = frozenset(_COMMANDS.values())

_encode = msgspec.json.Encoder().encode
_decode_command = msgspec.json.Decoder(DuplexCommand).decode
_decode_event = msgspec.json.Decoder(DuplexEvent).decode
_decode_any = msgspec.json.Decoder().decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A server event that this vocabulary does not have, as it came."""

    type: str
    raw: dict[str, Any]

    @property
    def event_id(self) -> str | None:
        """Its id."""
        return self._text("event_id")

    @property
    def server_event_seq(self) -> int | None:
        """Its place in the sequence."""
        found = self.raw.get("server_event_seq")
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    @property
    def session_id(self) -> str | None:
        """The session that it names."""
        return self._text("session_id")

    @property
    def response_id(self) -> str | None:
        """The response that it is about."""
        return self._text("response_id")

    @property
    def item_id(self) -> str | None:
        """The item that it is about."""
        return self._text("item_id")

    @property
    def audio(self) -> None:
        """None: what would be audio in it is not known."""
        return None

    @property
    def text(self) -> str | None:
        """What it calls its text."""
        return self._text("text")

    def _text(self, name: str) -> str | None:
        found = self.raw.get(name)
        return found if isinstance(found, str) else None

    def to_realtime(self) -> dict[str, Any]:
        """The JSON object as it came."""
        return self.raw


def decode_command(raw: str | bytes) -> DuplexCommand:
    """Turn one client message into its command.

    Raises:
        DuplexError: for whatever is wrong with it; nothing else escapes.
    """
    refuse_large(raw)
    try:
        command = _decode_command(raw)
    except _INVALID_JSON:
        command = _decode_slowly(raw)
    if type(command) in _FREE_FORM:
        refuse_free_form(command, command.event_id)
    if type(command) is SignalTurn:
        return resolve_signal(command)
    return command


def check_command(command: DuplexCommand) -> DuplexCommand:
    """Return a command that a program made as it would have come over the wire.

    Raises:
        TypeError: it is no command, or holds what no JSON can.
        DuplexError: for a field that is not of its type, as `decode_command` names it.
    """
    kind = type(command)
    if kind not in _COMMAND_CLASSES:
        found = reprlib.repr(command)
        raise TypeError(f"a command of omniduplex.protocol.duplex is wanted, not {found}")
    event_id = command.event_id if isinstance(command.event_id, str) else None
    try:
        fields = msgspec.to_builtins(command, builtin_types=_BYTES, enc_hook=_plain_number)
        checked: DuplexCommand = msgspec.convert(fields, kind, builtin_types=_BYTES)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _refusal(str(kind.__struct_config__.tag), str(error), event_id) from None
    if kind in _FREE_FORM:
        refuse_free_form(checked, event_id)
    return checked


def _plain_number(value: object) -> int | float:
    """Take the numbers of numpy, too."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"a command holds no {type(value).__module__}.{type(value).__name__}")


def resolve_signal(signal: SignalTurn) -> DuplexCommand:
    """Return the command that a turn signal stands for, or the signal if it is only that."""
    wire_type = ROUTED_SIGNALS.get(signal.event)
    if wire_type is None:
        return signal
    payload = signal.payload if isinstance(signal.payload, dict) else {}
    if signal.event == "timeout":
        payload = {"reason": "timeout", **payload}
    return _convert(wire_type, {**payload, "event_id": signal.event_id}, signal.event_id)


def encode_command(command: DuplexCommand) -> str:
    """Render a command for a server; what has its default value is left out."""
    return _encode(command).decode()


def encode_event(event: RealtimeEvent, *, event_id: str, seq: int | None) -> str:
    """Stamp a projected event with its id and sequence number, and render it."""
    if seq is None:
        stamped = msgspec.structs.replace(event, event_id=event_id)
    else:
        stamped = msgspec.structs.replace(event, event_id=event_id, server_event_seq=seq)
    return _encode(stamped).decode()


def decode_event(raw: str | bytes) -> DuplexEvent | UnknownEvent:
    """Turn one server message into its event; a type or shape that is not ours stays raw.

    Raises:
        DuplexError: `invalid_json` or `bad_event` when it is no event at all.
    """
    try:
        return _decode_event(raw)
    except _INVALID_JSON:
        message = _decode_object(raw)
    wire_type = message.get("type")
    if not isinstance(wire_type, str):
        raise DuplexError("bad_event", "An event needs a string `type`.", param="type")
    error, code = message.get("error"), message.get("code")
    if wire_type == "error" and isinstance(error, str) and isinstance(code, str):
        return _read_flat_error(error, code)
    return UnknownEvent(type=wire_type, raw=message)


def error_event(error: DuplexError) -> ErrorEvent:
    """Render a refusal as the event that reports it."""
    kind = error.kind
    return ErrorEvent(
        error=ErrorDetails(
            type=kind.error_class,
            code=error.code,
            message=_quote(error.message, _MAX_MESSAGE_CHARS),
            param=error.param,
            event_id=error.event_id,
            retryable=kind.retryable,
        )
    )


def _read_flat_error(message: str, code: str) -> ErrorEvent:
    """The shape in which other servers of the contract refuse before there is a session."""
    error_class = error_kind(code).error_class
    return ErrorEvent(error=ErrorDetails(type=error_class, code=code, message=message))


def _decode_object(raw: str | bytes) -> dict[str, Any]:
    try:
        message = _decode_any(raw)
    except msgspec.ValidationError as error:
        raise _number_refusal(raw, str(error)) from None
    except _INVALID_JSON as error:
        reason = _quote(str(error))
        raise DuplexError("invalid_json", f"The event is not JSON: {reason}.") from None
    if not isinstance(message, dict):
        raise DuplexError("bad_event", "An event is a JSON object.")
    return message


def _number_refusal(raw: str | bytes, reason: str) -> DuplexError:
    """Name the field of a number that no double holds, which stops the untyped decoder."""
    refusal = _refusal("", reason, read_event_id(raw))
    try:
        fields = _decode_fields(raw)
    except _INVALID_JSON:
        return refusal
    for name, value in fields.items():
        try:
            _decode_any(value)
        except msgspec.ValidationError:
            refusal.param = _quote(name)
            return refusal
        except _INVALID_JSON:  # a text further on that is none, which the number hid
            return refusal
    return refusal


def _decode_slowly(raw: str | bytes) -> DuplexCommand:
    """Decode what the union decoder refused: aliases, loose shapes, and all that is wrong."""
    message = _decode_object(raw)
    given_id = message.get("event_id")
    event_id = given_id if isinstance(given_id, str) else None
    wire_type = message.get("type")
    if not isinstance(wire_type, str):
        raise DuplexError(
            "bad_event", "An event needs a string `type`.", param="type", event_id=event_id
        )
    canonical = TYPE_ALIASES.get(wire_type, wire_type)
    if canonical not in _COMMANDS:
        raise DuplexError(
            "unknown_event",
            f"There is no client event {_quote(repr(wire_type))}.",
            param="type",
            event_id=event_id,
        )
    return _convert(canonical, message, event_id)


def _convert(wire_type: str, message: dict[str, Any], event_id: str | None) -> DuplexCommand:
    fields, spelt = _fields(wire_type, message)
    try:
        command: DuplexCommand = msgspec.convert(fields, _COMMANDS[wire_type])
        if spelt and isinstance(command, AppendAudio):
            parse_append_format(command, AudioFormat())  # later nobody knows the name it came by
    except (msgspec.ValidationError, RecursionError) as error:
        raise as_spelt(_refusal(wire_type, str(error), event_id), spelt) from None
    except DuplexError as refusal:
        raise as_spelt(refusal, spelt) from None
    return command


def _fields(wire_type: str, message: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a message's own fields by their canonical names, and the other names that it used.

    A null counts as absent.
    """
    if wire_type == "session.update" and "session" not in message:
        session = {key: value for key, value in message.items() if key not in ("type", "event_id")}
        message = {"event_id": message.get("event_id"), "session": session}
    kinds = field_kinds(_COMMANDS[wire_type])
    fields = {
        name: loosened(message[name], kind)
        for name, kind in kinds.items()
        if message.get(name) is not None
    }
    spelt: dict[str, str] = {}
    for alias, name in FIELD_ALIASES.get(wire_type, {}).items():
        if name not in fields and message.get(alias) is not None:
            fields[name] = loosened(message[alias], kinds[name])
            spelt[name] = alias
    # Pictures may come without sound.
    if wire_type == "input_audio_buffer.append" and fields.get("video_frames"):
        fields.setdefault("audio", "")
    return fields | {"type": wire_type}, spelt


def _refusal(wire_type: str, reason: str, event_id: str | None) -> DuplexError:
    """Name what a validation message complains of: code, dotted path, sentence."""
    at = _PATH.search(reason)
    path = at["path"] if at else ""
    sentence = reason[: at.start()] if at else reason
    field = _FIELD.search(sentence)
    if field:
        path = f"{path}.{field['name']}" if path else field["name"]
    return DuplexError(
        _code(wire_type, path, sentence),
        f"{_quote(sentence)}.",
        param=_quote(path) or None,
        event_id=event_id,
    )


def _code(wire_type: str, path: str, sentence: str) -> str:
    if sentence.startswith("Invalid base64"):
        return "bad_audio"
    if path == "item.output":
        return "invalid_function_call_output"
    if path == "item_id" and wire_type.startswith("conversation.item."):
        return "missing_item_id"
    for name in path.split("."):
        code = FIELD_CODES.get(name.partition("[")[0])
        if code:
            return code
    return COMMAND_CODES.get(wire_type, "bad_event")


def _quote(text: str, limit: int = _MAX_QUOTED_CHARS) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
