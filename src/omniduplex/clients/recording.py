"""Recorded conversations: JSON lines of both directions with times, without their secrets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET, UnsetType

Direction = Literal["c2s", "s2c"]

REDACTED = "redacted"
# A text, and every text inside an object, under one of these names is not written down.
SECRET_NAMES = frozenset(
    {
        "resume_token",
        "api_key",
        "authorization",
        "headers",
        "client_secret",
        "access_token",
        "token",
        "password",
    }
)
# A voice is known again by the digest of its sample.
VOICE_NAMES = frozenset({"ref_audio"})
# Whatever else a URL says may be a key.
KNOWN_QUERY = frozenset({"model", "duplex", "autostart", "resume", "intent"})

# In a text that is no JSON, an object under such a name has no known end.
_SECRET_TEXT = re.compile(
    rf'("(?:{"|".join(sorted(SECRET_NAMES | VOICE_NAMES))})"\s*:\s*)'
    r'(?:"(?:[^"\\]|\\.)*"?|[\[{].*)',
    re.DOTALL,
)
# What is no JSON object, or nests too deep to be gone through, is kept as the text it was.
_NO_OBJECT = (msgspec.DecodeError, UnicodeError, RecursionError)
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class RecordingError(Exception):
    """A file is no recorded conversation; the message names the line."""


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: what was connected, and to which server."""

    format: Literal["omniduplex-conversation"] = "omniduplex-conversation"
    version: Literal[1] = 1
    created: str
    """UTC, ISO 8601."""
    url: str
    """Path and query of the connection."""
    model: str
    dialect: Literal["openai", "duplex"]
    beta: bool = False
    """Whether the client asked for the beta events (`OpenAI-Beta: realtime=v1`)."""
    server: str
    """Version of the server."""


class CloseFrame(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a side closed the connection."""

    code: int
    reason: str = ""


class Entry(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One message: exactly one of an event, a text that is no JSON object, bytes, or a close."""

    t: float
    """Seconds since the connection began."""
    dir: Direction
    event: dict[str, Any] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    binary: bytes | UnsetType = UNSET
    close: CloseFrame | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Raises ValueError unless the entry is one thing."""
        contents = (self.event, self.text, self.binary, self.close)
        if sum(content is not UNSET for content in contents) != 1:
            raise ValueError("an entry has one of `event`, `text`, `binary` and `close`")


class Conversation(NamedTuple):
    """A recording, read."""

    header: Header
    entries: tuple[Entry, ...]

    @property
    def end(self) -> Entry | None:
        """How the connection was closed; None when the recording does not tell."""
        return next((entry for entry in self.entries if entry.close is not UNSET), None)


class ConversationWriter:
    """Writes one conversation to an open file; the header is there from the start."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file = file
        self._write(header)

    def message(self, t: float, direction: Direction, data: str | bytes) -> None:
        """Write a message of the wire, without its secrets."""
        if isinstance(data, bytes):
            self._write(Entry(t=t, dir=direction, binary=data))
            return
        try:
            self._write(Entry(t=t, dir=direction, event=redact(_decode_object(data))))
        except _NO_OBJECT:
            text = _SECRET_TEXT.sub(rf'\1"{REDACTED}"', data)
            self._write(Entry(t=t, dir=direction, text=text))

    def close(self, t: float, direction: Direction, frame: CloseFrame) -> None:
        """Write the end of the connection."""
        self._write(Entry(t=t, dir=direction, close=frame))

    def _write(self, line: msgspec.Struct) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")


def read_conversation(path: Path) -> Conversation:
    """Read a recording.

    Raises:
        RecordingError: a line is not what it must be.
        OSError: the file cannot be read.
    """
    lines = path.read_bytes().splitlines()
    if not lines:
        raise RecordingError(f"{path}: the file is empty")
    header = _line(path, 1, lines[0], msgspec.json.Decoder(Header).decode)
    decode = msgspec.json.Decoder(Entry).decode
    entries = (_line(path, number, line, decode) for number, line in enumerate(lines[1:], 2))
    return Conversation(header, tuple(entries))


def redact(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without secrets: tokens and keys are gone, a voice is its digest."""
    return {name: _redact_member(name, value) for name, value in event.items()}


def redact_url(url: str) -> str:
    """Return a URL's path and query; a value whose name is not ours is not written down."""
    parts = urlsplit(url)
    query = [
        (name, value if name in KNOWN_QUERY else REDACTED)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    return urlunsplit(("", "", parts.path, urlencode(query), ""))


def _redact_member(name: str, value: Any) -> Any:
    if name in SECRET_NAMES:
        return _map_texts(value, lambda _: REDACTED)
    if name in VOICE_NAMES:
        return _map_texts(value, _digest)
    return _redact_value(value)


def _redact_value(value: Any) -> Any:
    if isinstance(value, dict):
        return redact(value)
    if isinstance(value, list):
        return [_redact_value(one) for one in value]
    return value


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change the texts of a value; an object stays one, as in a tool's JSON schema."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_texts(one, change) for name, one in value.items()}
    if isinstance(value, list):
        return [_map_texts(one, change) for one in value]
    return value


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _line(path: Path, number: int, line: bytes, decode: Callable[[bytes], Any]) -> Any:
    try:
        return decode(line)
    except _NO_OBJECT as error:
        raise RecordingError(f"{path}, line {number}: {error}") from None
