"""How large, how deep and how wide a client event may be, told before anything walks through it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from omniduplex.protocol.duplex.errors import DuplexError
from omniduplex.protocol.realtime.items import ItemInput

# UTF-8 bytes of one client message (wire contract, transport).
MAX_EVENT_BYTES = 15 * 1024 * 1024
# Our own limit of an event that carries no media: reading it must not hold up other sessions.
MAX_PLAIN_EVENT_BYTES = 256 * 1024
# As many JSON values as a plain event has room for; each takes at least "1,".
MAX_EVENT_VALUES = MAX_PLAIN_EVENT_BYTES // 2
MEDIA_EVENTS = frozenset({"input_audio_buffer.append", "conversation.item.create"})

# Objects of a client's own come back in events, so they must encode on any stack.
_MAX_DEPTH = 64
# MessagePack, in which events go to a model's process, has no wider integers.
_INTEGERS = range(-(2**63), 2**64)
# What holds nothing free-form; empty values count as such too.
_LEAVES = frozenset({str, bytes, int, float, bool, ItemInput})
# Client text is quoted back in `param`, but never at length.
_MAX_PARAM_CHARS = 200
_COUNTED_AT_ONCE = 1024 * 1024


class _Media(msgspec.Struct, frozen=True):
    """The texts of one object that may be large: voice samples, pictures, sound."""

    ref_audio: str | None = None
    tts_ref_audio: str | None = None
    image_url: str | None = None
    audio: str | None = None

    @property
    def size(self) -> int:
        """Their characters."""
        return sum(len(text or "") for text in msgspec.structs.astuple(self))


class _Session(msgspec.Struct, frozen=True):
    ref_audio: str | None = None
    extra_body: _Media | None = None

    @property
    def size(self) -> int:
        return len(self.ref_audio or "") + (self.extra_body.size if self.extra_body else 0)


class _Item(msgspec.Struct, frozen=True):
    content: tuple[_Media, ...] | None = None

    @property
    def size(self) -> int:
        return sum(part.size for part in self.content or ())


class _Response(msgspec.Struct, frozen=True):
    input: tuple[_Item, ...] | None = None

    @property
    def size(self) -> int:
        return sum(item.size for item in self.input or ())


class _Creation(msgspec.Struct, frozen=True):
    item: _Item

    @property
    def size(self) -> int:
        return self.item.size


class _Envelope(msgspec.Struct, frozen=True):
    """As much of a message as names it; the rest is skipped without making objects of it."""

    type: msgspec.Raw = msgspec.Raw()
    event_id: msgspec.Raw = msgspec.Raw()
    session: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
    event: msgspec.Raw = msgspec.Raw()
    payload: msgspec.Raw = msgspec.Raw()


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_session = msgspec.json.Decoder(_Session).decode
_read_response = msgspec.json.Decoder(_Response).decode
_read_creation = msgspec.json.Decoder(_Creation).decode
_read_text = msgspec.json.Decoder(str).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def refuse_large(raw: str | bytes) -> None:
    """Refuse a message that is too large for what it is, at a cost that its size alone bounds.

    Raises:
        DuplexError: `event_too_large`.
    """
    if not _is_larger(raw, MAX_PLAIN_EVENT_BYTES):
        return
    envelope = _envelope(raw)
    event_id = _text(envelope.event_id)
    if _is_larger(raw, MAX_EVENT_BYTES):
        message = f"An event has at most {MAX_EVENT_BYTES} bytes."
        raise DuplexError("event_too_large", message, event_id=event_id)
    if _has_more_values(raw):
        message = f"An event of this size has at most {MAX_EVENT_VALUES} values."
        raise DuplexError("event_too_large", message, event_id=event_id)
    if _text(envelope.type) in MEDIA_EVENTS:
        return
    if _is_larger(raw, MAX_PLAIN_EVENT_BYTES + _media_size(envelope, raw)):
        message = f"An event has at most {MAX_PLAIN_EVENT_BYTES} bytes beside its media."
        raise DuplexError("event_too_large", message, event_id=event_id)


def read_event_id(raw: str | bytes) -> str | None:
    """Return the id of a message that is not read any further."""
    return _text(_envelope(raw).event_id)


def refuse_free_form(command: msgspec.Struct, event_id: str | None) -> None:
    """Refuse what a client's own objects cannot hold on their way to a model and back.

    Raises:
        DuplexError: `bad_event` for too many levels, or for an integer beyond 64 bits.
    """
    if _is_deeper(command, _MAX_DEPTH):
        message = f"An event nests at most {_MAX_DEPTH} levels."
        raise DuplexError("bad_event", message, event_id=event_id)
    try:
        msgspec.msgpack.encode(command)
    except OverflowError:
        message = "An integer has at most 64 bits."
        path = _path_of_wide_integer(msgspec.to_builtins(command)) or ""
        param = path.removeprefix(".")[:_MAX_PARAM_CHARS] or None
        raise DuplexError("bad_event", message, param=param, event_id=event_id) from None


def _envelope(raw: str | bytes) -> _Envelope:
    try:
        return _read_envelope(raw)
    except _UNREADABLE:
        return _Envelope()


def _text(raw: msgspec.Raw) -> str | None:
    try:
        return _read_text(raw)
    except _UNREADABLE:
        return None


def _is_larger(raw: str | bytes, limit: int) -> bool:
    if len(raw) > limit:
        return True
    # A character has up to four UTF-8 bytes, so only long texts need the exact count.
    if isinstance(raw, bytes) or raw.isascii() or len(raw) * 4 <= limit:
        return False
    return len(raw.encode("utf-8", "surrogatepass")) > limit


def _media_size(envelope: _Envelope, raw: str | bytes) -> int:
    """Characters of what makes an event large that carries media now and then."""
    try:
        match _text(envelope.type):
            case "session.update":  # the session may be the event itself
                return _read_session(_given(envelope.session) or raw).size
            case "response.create":
                return _read_response(envelope.response).size
            case "turn.signal" | "signal_turn":
                return _signal_size(envelope)
    except _UNREADABLE:
        return 0
    return 0


def _signal_size(envelope: _Envelope) -> int:
    match _text(envelope.event):
        case "session.update":
            return _read_session(envelope.payload).size
        case "conversation.item.create":
            return _read_creation(envelope.payload).size
    return 0


def _given(raw: msgspec.Raw) -> msgspec.Raw | None:
    return raw if memoryview(raw).nbytes else None


def _has_more_values(raw: str | bytes) -> bool:
    """Whether there may be more values than allowed; punctuation within texts counts too."""
    values = 1
    for start in range(0, len(raw), _COUNTED_AT_ONCE):
        end = start + _COUNTED_AT_ONCE
        if isinstance(raw, str):
            values += sum(raw.count(mark, start, end) for mark in ",[{")
        else:
            values += sum(raw.count(mark, start, end) for mark in b",[{")
        if values > MAX_EVENT_VALUES:
            return True
    return False


def _is_deeper(value: object, levels: int) -> bool:
    """Go down level by level: a stack of calls would cost more, and could overflow."""
    row = [value]
    for _ in range(levels):
        row = [one for above in row for one in _inner(above) if one and type(one) not in _LEAVES]
        if not row:
            return False
    return True


def _inner(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    return msgspec.structs.astuple(value) if isinstance(value, msgspec.Struct) else ()


def _path_of_wide_integer(value: Any) -> str | None:
    """Return the path of the first integer beyond 64 bits, each key after a dot."""
    if isinstance(value, int):
        return None if value in _INTEGERS else ""
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner, step = value.items(), ".{}"
    elif isinstance(value, list | tuple):
        inner, step = enumerate(value), "[{}]"
    for key, one in inner:
        found = _path_of_wide_integer(one)
        if found is not None:
            return step.format(key) + found
    return None
