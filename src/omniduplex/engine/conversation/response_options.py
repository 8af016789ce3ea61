"""What a client asks of one response, checked and filled up from the session's configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from omniduplex.engine.conversation.history import HistoryEntry
from omniduplex.engine.conversation.new_items import ItemReader
from omniduplex.protocol.duplex import (
    AudioFormat,
    CreateResponse,
    DuplexError,
    DuplexSessionConfig,
    ItemInput,
    Modality,
    OutputAudioPatch,
    ResponseOptions,
    read_max_tokens,
    read_output_format,
    read_speed,
    read_tool_choice,
    read_tools,
    read_voice,
)

# Limits of the OpenAI API, which its clients know.
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARS = 64
MAX_METADATA_VALUE_CHARS = 512

_TOKEN_LIMITS = ("max_output_tokens", "max_response_output_tokens", "max_tokens")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One response as it was asked for; `input` stands in for the conversation if it is there."""

    modalities: tuple[Modality, ...]
    output_format: AudioFormat
    instructions: str | None
    temperature: float | None
    max_tokens: int | None
    voice: str | None
    tools: tuple[dict[str, Any], ...]
    tool_choice: str | dict[str, Any]
    metadata: dict[str, Any] | None
    in_history: bool
    interruptible: bool
    input: tuple[HistoryEntry, ...] | None
    speed: float = 1.0


class _AudioOptions(msgspec.Struct, frozen=True):
    output: OutputAudioPatch = OutputAudioPatch()


def read_options(
    options: ResponseOptions,
    config: DuplexSessionConfig,
    reader: ItemReader,
    *,
    refused: Iterable[str] = (),
) -> Wanted:
    """Read the options of a response; `refused` are those that its model cannot follow.

    Raises:
        DuplexError: for the first that cannot be, by its name.
    """
    _refuse_what_the_model_cannot(options, refused)
    if options.conversation not in (None, "auto", "none"):
        message = "conversation is auto or none"
        raise DuplexError("bad_event", message, param="response.conversation")
    audio = _audio(options)
    return Wanted(
        modalities=_modalities(options) or config.modalities,
        output_format=read_output_format(
            config.output_format,
            ("response.audio.output.format", audio.output.format),
            ("response.output_audio_format", options.output_audio_format),
            ("response.response_format", options.response_format),
        ),
        instructions=(
            config.instructions if options.instructions is None else options.instructions
        ),
        temperature=_temperature(options, config.temperature),
        max_tokens=_max_tokens(options, config.max_output_tokens),
        voice=_voice(options, audio) or config.voice,
        speed=_speed(options, audio) or config.speed or 1.0,
        tools=(
            config.tools if options.tools is None else read_tools(options.tools, "response.tools")
        ),
        tool_choice=(
            config.tool_choice
            if options.tool_choice is None
            else read_tool_choice(options.tool_choice, "response.tool_choice")
        ),
        metadata=_metadata(options, limited=not config.knows_extensions),
        in_history=options.conversation != "none",
        interruptible=options.interruptible is not False,
        input=None if options.input is None else _input(reader, options.input),
    )


def out_of_band_options(command: CreateResponse) -> ResponseOptions | None:
    """The options of a response beside the conversation; None where it is to be in it."""
    options = command.response
    if isinstance(options, msgspec.UnsetType) or options.conversation != "none":
        return None
    return options


def _refuse_what_the_model_cannot(options: ResponseOptions, refused: Iterable[str]) -> None:
    for name in sorted(refused):
        if getattr(options, name) is not None:
            raise DuplexError(
                "unsupported_native_response_options",
                f"this model cannot follow response.{name}",
                param=f"response.{name}",
            )


def _audio(options: ResponseOptions) -> _AudioOptions:
    if options.audio is None:
        return _AudioOptions()
    try:
        return msgspec.convert(options.audio, _AudioOptions)
    except msgspec.ValidationError as error:
        raise DuplexError("bad_event", f"{error}", param="response.audio") from None


def _voice(options: ResponseOptions, audio: _AudioOptions) -> str | None:
    nested = audio.output.voice
    if nested is not msgspec.UNSET:
        return read_voice(nested, "response.audio.output.voice")
    return options.voice


def _speed(options: ResponseOptions, audio: _AudioOptions) -> float | None:
    nested = audio.output.speed
    if nested is not msgspec.UNSET:
        return read_speed(nested, "response.audio.output.speed")
    return read_speed(options.speed, "response.speed")


def _modalities(options: ResponseOptions) -> tuple[Modality, ...] | None:
    for name in ("output_modalities", "modalities"):
        given = getattr(options, name)
        if given is None:
            continue
        if not given or not {"audio", "text"}.issuperset(given):
            message = "the modalities are audio, text or both"
            raise DuplexError("bad_event", message, param=f"response.{name}")
        chosen: tuple[Modality, ...] = ("audio", "text")
        return tuple(name for name in chosen if name in given)
    return None


def _temperature(options: ResponseOptions, default: float | None) -> float | None:
    if options.temperature is None:
        return default
    if options.temperature < 0:
        message = "A temperature is not below 0."
        raise DuplexError("bad_event", message, param="response.temperature")
    return options.temperature


def _max_tokens(options: ResponseOptions, default: int | None) -> int | None:
    """The token limit; "inf" lifts the session's. All spellings are checked, the first counts."""
    read = [
        read_max_tokens(value, f"response.{name}")
        for name in _TOKEN_LIMITS
        if (value := getattr(options, name)) is not None
    ]
    return read[0] if read else default


def _metadata(options: ResponseOptions, *, limited: bool) -> dict[str, Any] | None:
    given = options.metadata
    if given is None or not limited:
        return given
    if len(given) > MAX_METADATA_PAIRS:
        message = f"Metadata has at most {MAX_METADATA_PAIRS} pairs."
        raise DuplexError("bad_event", message, param="response.metadata")
    for key, value in given.items():
        if not isinstance(value, str) or len(value) > MAX_METADATA_VALUE_CHARS:
            message = f"A value of metadata is a text of at most {MAX_METADATA_VALUE_CHARS}."
            raise DuplexError("bad_event", message, param=f"response.metadata.{key}"[:200])
        if len(key) > MAX_METADATA_KEY_CHARS:
            message = f"A key of metadata has at most {MAX_METADATA_KEY_CHARS} characters."
            raise DuplexError("bad_event", message, param="response.metadata")
    return given


def _input(reader: ItemReader, given: tuple[ItemInput, ...]) -> tuple[HistoryEntry, ...]:
    return tuple(
        _entry(reader, item, f"response.input[{index}]") for index, item in enumerate(given)
    )


def _entry(reader: ItemReader, given: ItemInput, where: str) -> HistoryEntry:
    if given.type == "item_reference":
        return reader.history.find(given.id or "", param=f"{where}.id")
    read = reader.read(given, where, among=None)
    if read.sounds:
        index = next(iter(read.sounds))
        raise DuplexError(
            "unsupported",
            "audio in response.input needs its transcript; refer to an item instead",
            param=f"{where}.content[{index}].audio",
        )
    return HistoryEntry(read.item)
