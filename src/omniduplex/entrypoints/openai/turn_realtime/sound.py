"""The sound of a half-duplex conversation: as a client sent it, and as it is told what it gets."""

from __future__ import annotations

import msgspec

from omniduplex.audio.stream import InputDecoder
from omniduplex.engine.turns import TurnAudio
from omniduplex.protocol.duplex import (
    AudioFormat,
    Dialect,
    DuplexEvent,
    Encoding,
    RealtimeEvent,
    ResponsePartEvent,
    project,
)


class Sound(msgspec.Struct, frozen=True):
    """Bytes of a client, in the format of its session."""

    data: bytes
    format: AudioFormat

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.data) / self.format.bytes_per_sample / self.format.sample_rate_hz

    def decoded(self) -> TurnAudio:
        """The same sound as PCM; long sound takes a while.

        Raises:
            ValueError: some sample is no number.
        """
        decoder = InputDecoder(
            self.format.encoding, self.format.sample_rate_hz, self.format.sample_rate_hz
        )
        return TurnAudio(decoder.process(self.data) + decoder.flush(), self.format.sample_rate_hz)


class SoundDelta(ResponsePartEvent, frozen=True, kw_only=True, tag="response.output_audio.delta"):
    """Audio of an answer, and how to play it (wire contract, section 13: the chat fallback).

    `audio_duration_ms` is that of all audio of the response up to here, rounded down.
    """

    delta: bytes
    format: Encoding
    sample_rate_hz: int
    channels: int = 1
    audio_duration_ms: int


class BetaSoundDelta(SoundDelta, frozen=True, kw_only=True, tag="response.audio.delta"):
    """The same by the name that the API's beta has for it."""


ShownEvent = DuplexEvent | SoundDelta


def render(event: ShownEvent, dialect: Dialect) -> RealtimeEvent | None:
    """An event in its client's dialect; None when that dialect does not show it."""
    if not isinstance(event, SoundDelta):
        return project(event, dialect)
    if dialect is not Dialect.BETA:
        return event
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return BetaSoundDelta(**fields)
