"""Audio formats on the wire: their spellings in, their GA names out, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.duplex.commands import AppendAudio
from omniduplex.protocol.duplex.config import AudioFormat, DuplexSessionConfig, Encoding
from omniduplex.protocol.duplex.errors import DuplexError
from omniduplex.protocol.duplex.session_patch import (
    FormatPatch,
    SessionPatch,
    first_given,
    input_patch,
    output_patch,
)
from omniduplex.protocol.realtime.session import AudioFormatObject

MIN_RATE_HZ = 8_000
MAX_RATE_HZ = 192_000
G711_RATE_HZ = 8_000
OUTPUT_RATE_HZ = 24_000

ENCODINGS: dict[str, Encoding] = {
    "pcm16": "pcm16",
    "pcm_s16le": "pcm16",
    "s16le": "pcm16",
    "pcm": "pcm16",
    "audio/pcm": "pcm16",
    "audio/pcm16": "pcm16",
    "pcm_f32le": "pcm_f32le",
    "f32le": "pcm_f32le",
    "audio/pcm_f32le": "pcm_f32le",
    "g711_ulaw": "g711_ulaw",
    "g711-ulaw": "g711_ulaw",
    "ulaw": "g711_ulaw",
    "mulaw": "g711_ulaw",
    "audio/g711_ulaw": "g711_ulaw",
    "audio/pcmu": "g711_ulaw",
    "g711_alaw": "g711_alaw",
    "g711-alaw": "g711_alaw",
    "alaw": "g711_alaw",
    "audio/g711_alaw": "g711_alaw",
    "audio/pcma": "g711_alaw",
    "wav": "wav",
    "audio/wav": "wav",
}
INPUT_ONLY: Encoding = "pcm_f32le"
OUTPUT_ONLY: Encoding = "wav"

_GA_NAMES: dict[Encoding, str] = {
    "pcm16": "audio/pcm",
    "pcm_f32le": "audio/pcm_f32le",
    "g711_ulaw": "audio/pcmu",
    "g711_alaw": "audio/pcma",
    "wav": "audio/wav",
}


class GivenFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a format that a client named; a rate is in Hz."""

    encoding: Encoding | None = None
    sample_rate_hz: int | None = None


def format_object(audio_format: AudioFormat) -> AudioFormatObject:
    """Render a format as the GA object; G.711 shows a rate only when it is not its own."""
    is_g711_proper = is_g711(audio_format.encoding) and audio_format.sample_rate_hz == G711_RATE_HZ
    return AudioFormatObject(
        type=_GA_NAMES[audio_format.encoding],
        rate=UNSET if is_g711_proper else audio_format.sample_rate_hz,
    )


def is_g711(encoding: Encoding) -> bool:
    """Whether an encoding is one of the two G.711 laws."""
    return encoding in ("g711_ulaw", "g711_alaw")


def read_format(value: str | FormatPatch, param: str) -> GivenFormat:
    """Read a format's name or GA object.

    Raises:
        DuplexError: `unsupported_audio_format` naming `param`.
    """
    if isinstance(value, str):
        return GivenFormat(encoding=_read_encoding(value, param))
    name = value.type if value.type is not UNSET else value.format
    rates = (value.rate, value.sample_rate_hz, value.sample_rate)
    rate = next((rate for rate in rates if rate is not UNSET), UNSET)
    return GivenFormat(
        encoding=None if name is UNSET else _read_encoding(name, f"{param}.type"),
        sample_rate_hz=read_rate(rate, f"{param}.rate", code="unsupported_audio_format"),
    )


def read_rate(rate: float | UnsetType | None, param: str, *, code: str) -> int | None:
    """Check a sample rate in Hz; absent stays None.

    Raises:
        DuplexError: `code` when it is not a whole number within the limits.
    """
    if rate is UNSET or rate is None:
        return None
    if not MIN_RATE_HZ <= rate <= MAX_RATE_HZ or rate != int(rate):
        message = f"A sample rate is a whole number from {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz."
        raise DuplexError(code, message, param=param)
    return int(rate)


def complete_format(current: AudioFormat, given: GivenFormat, *, pcm_rate_hz: int) -> AudioFormat:
    """Fill a given format up: G.711 means 8 kHz, PCM keeps a PCM rate or takes `pcm_rate_hz`."""
    encoding = given.encoding or current.encoding
    if given.sample_rate_hz is not None:
        rate_hz = given.sample_rate_hz
    elif encoding == current.encoding or not (is_g711(encoding) or is_g711(current.encoding)):
        rate_hz = current.sample_rate_hz
    else:
        rate_hz = G711_RATE_HZ if is_g711(encoding) else pcm_rate_hz
    return AudioFormat(encoding=encoding, sample_rate_hz=rate_hz)


def parse_append_format(command: AppendAudio, session_format: AudioFormat) -> AudioFormat:
    """Return the format of one append, which may differ from the session's.

    Raises:
        DuplexError: `unsupported_audio_format`, or `bad_event` for an impossible rate.
    """
    named, rate = command.format, command.sample_rate_hz
    if named in (None, session_format.encoding) and rate in (None, session_format.sample_rate_hz):
        return session_format
    try:
        given = _read_append_format(command.format)
        rate_hz = read_rate(command.sample_rate_hz, "sample_rate_hz", code="bad_event")
    except DuplexError as error:
        raise DuplexError(
            error.code, error.message, param=error.param, event_id=command.event_id
        ) from None
    _refuse(given, OUTPUT_ONLY, "format", event_id=command.event_id)
    if rate_hz is not None:
        given = msgspec.structs.replace(given, sample_rate_hz=rate_hz)
    return complete_format(session_format, given, pcm_rate_hz=AudioFormat().sample_rate_hz)


def read_output_format(current: AudioFormat, *given: tuple[str, Any]) -> AudioFormat:
    """Return the format of one response: the first that is given by its path, else `current`.

    Raises:
        DuplexError: `unsupported_audio_format` naming the field.
    """
    param, value = next((one for one in given if one[1] not in (None, UNSET)), ("", None))
    if value is None:
        return current
    try:
        named: str | FormatPatch = msgspec.convert(value, str | FormatPatch)
    except msgspec.ValidationError as error:
        raise DuplexError("unsupported_audio_format", f"{error}", param=param) from None
    read = read_format(named, param)
    _refuse(read, INPUT_ONLY, param)
    return complete_format(current, read, pcm_rate_hz=OUTPUT_RATE_HZ)


def patch_formats(
    config: DuplexSessionConfig, patch: SessionPatch, defaults: DuplexSessionConfig
) -> dict[str, AudioFormat]:
    """Return both formats of the session as a change leaves them.

    Raises:
        DuplexError: `unsupported_audio_format` naming the field.
    """
    incoming, outgoing = input_patch(patch), output_patch(patch)
    named_in: tuple[str, str | FormatPatch | UnsetType] = first_given(
        ("session.audio.input.format", incoming.format),
        ("session.input_audio_format", patch.input_audio_format),
    )
    given_in = _given_format(
        named_in,
        first_given(
            ("session.sample_rate_hz", patch.sample_rate_hz),
            ("session.sample_rate", patch.sample_rate),
            ("session.audio.input.sample_rate_hz", incoming.sample_rate_hz),
        ),
    )
    named_out: tuple[str, str | FormatPatch | UnsetType] = first_given(
        ("session.audio.output.format", outgoing.format),
        ("session.output_audio_format", patch.output_audio_format),
        ("session.response_format", patch.response_format),
    )
    given_out = _given_format(
        named_out, ("session.audio.output.sample_rate_hz", outgoing.sample_rate_hz)
    )
    _refuse(given_in, OUTPUT_ONLY, named_in[0])
    _refuse(given_out, INPUT_ONLY, named_out[0])
    return {
        "input_format": complete_format(
            config.input_format, given_in, pcm_rate_hz=defaults.input_format.sample_rate_hz
        ),
        "output_format": complete_format(
            config.output_format, given_out, pcm_rate_hz=defaults.output_format.sample_rate_hz
        ),
    }


def _given_format(
    named: tuple[str, str | FormatPatch | UnsetType], rated: tuple[str, float | UnsetType]
) -> GivenFormat:
    """Read a format and the rate beside it, which counts before one inside a format object.

    As in an append; wire contract, section 3.1.
    """
    param, value = named
    given = GivenFormat() if value is UNSET else read_format(value, param)
    rate_hz = read_rate(rated[1], rated[0], code="unsupported_audio_format")
    if rate_hz is None:
        return given
    return GivenFormat(encoding=given.encoding, sample_rate_hz=rate_hz)


def _refuse(
    given: GivenFormat, one_way: Encoding, param: str, *, event_id: str | None = None
) -> None:
    """Refuse an encoding that goes the other way only."""
    if given.encoding == one_way:
        way = "input" if one_way == INPUT_ONLY else "output"
        message = f"{one_way} is an {way} format only."
        raise DuplexError("unsupported_audio_format", message, param=param, event_id=event_id)


def _read_append_format(value: str | dict[str, Any] | None) -> GivenFormat:
    if value is None:
        return GivenFormat()
    if isinstance(value, str):
        return read_format(value, "format")
    try:
        return read_format(msgspec.convert(value, FormatPatch), "format")
    except msgspec.ValidationError as error:
        message = f"The format object is not valid: {error}."
        raise DuplexError("unsupported_audio_format", message, param="format") from None


def _read_encoding(name: str, param: str) -> Encoding:
    encoding = ENCODINGS.get(name.lower())
    if encoding is None:
        message = f"The audio format {name[:40]!r} is not supported."
        raise DuplexError("unsupported_audio_format", message, param=param)
    return encoding
