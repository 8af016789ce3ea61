"""The way of a client's audio into the open turn: bounded, converted, in order."""

from __future__ import annotations

from collections.abc import Callable

from omniduplex.audio.pcm import SAMPLE_BYTES
from omniduplex.audio.stream import InputDecoder
from omniduplex.engine.duplex.pending_input import input_bytes
from omniduplex.engine.duplex.session.core import INLINE_BYTES, SessionCore
from omniduplex.engine.duplex.session.effects import Prepare
from omniduplex.engine.duplex.session.held_commands import HeldCommands
from omniduplex.engine.duplex.session.inputs import AudioReady
from omniduplex.protocol.duplex import (
    AppendAudio,
    AudioFormat,
    DuplexError,
    RealtimeCommand,
    parse_append_format,
)

Hear = Callable[[AppendAudio, bytes], None]
"""Takes an append and its audio: int16 mono at the plugin's `input_rate_hz`."""


class InputAudio:
    """Gives appends to `hear` in the model's format, in the order they came.

    While a large append is converted off the loop, the commands behind it wait in `held`, so that
    a cancel can still overtake.
    """

    def __init__(self, core: SessionCore, hear: Hear) -> None:
        self._core = core
        self._hear = hear
        self._format = core.config.input_format
        self._decoder: InputDecoder | None = None
        self._converting: dict[int, int] = {}  # bytes by ticket, unwanted ones too
        self.held = HeldCommands(core.pending)

    def hold(self, command: RealtimeCommand) -> bool:
        """Keep a command back if it has to wait for audio before it.

        Raises:
            DuplexError: `input_backpressure`.
        """
        if not self.held.stops(command):
            return False
        self._core.check_room(input_bytes(command))
        self.held.hold(command)
        return True

    def admit(self, command: AppendAudio) -> AudioFormat:
        """Check that there is room for an append; the format it comes in.

        Raises:
            DuplexError: `unsupported_audio_format`, `input_backpressure`.
        """
        wanted = parse_append_format(command, self._core.config.input_format)
        self._core.check_room(len(command.audio))
        return wanted

    def convert(self, command: AppendAudio, wanted: AudioFormat) -> None:
        """Have the audio of an append heard, at once or when it is converted.

        Raises:
            DuplexError: `bad_audio`.
        """
        decoder = self._decoder_for(wanted)
        if len(command.audio) > INLINE_BYTES:
            ticket = self._core.new_ticket()
            self.held.begin(command, ticket)
            self._converting[ticket] = len(command.audio)
            self._core.pending.held_bytes += len(command.audio)
            self._core.effects.append(Prepare(ticket, lambda: decoder.process(command.audio)))
            return
        try:
            pcm = decoder.process(command.audio)
        except ValueError as error:
            raise _bad_audio(command, str(error)) from error
        self._take(command, pcm)

    def converted(self, ready: AudioReady) -> None:
        """A large append is converted, or one that was dropped meanwhile."""
        self._core.pending.held_bytes -= self._converting.pop(ready.ticket, 0)
        command = self.held.finish(ready.ticket)
        if command is None:
            return
        if ready.error is None:
            self._take(command, ready.pcm)
        else:
            self._core.emit_error(_bad_audio(command, ready.error))

    def _take(self, command: AppendAudio, pcm: bytes) -> None:
        # A session that ends turns by listening streams for ever: what its model has heard is gone.
        if not self._core.config.decides_turns:
            self._core.pending.turn_bytes += len(command.audio)
        self._hear(command, pcm)

    def _decoder_for(self, wanted: AudioFormat) -> InputDecoder:
        if self._decoder is None or wanted != self._format:
            self._format = wanted
            rate_hz = self._core.plugin.input_rate_hz
            self._decoder = InputDecoder(wanted.encoding, wanted.sample_rate_hz, rate_hz)
            self._core.pending.wire_share = wanted.byte_count(1000) / (rate_hz * SAMPLE_BYTES)
        return self._decoder

    def free(self, size: int) -> None:
        """So many bytes that came in are no part of the open turn."""
        if size:
            pending = self._core.pending
            pending.turn_bytes = max(0, pending.turn_bytes - size)

    def flush(self) -> bytes:
        """What the conversion still holds; half a sample is no audio."""
        return b"" if self._decoder is None else self._decoder.flush()

    def turn_over(self) -> None:
        """The open turn was sealed or dropped: its room is free again."""
        self._core.pending.turn_bytes = 0

    def drop_open(self) -> bool:
        """Forget audio that no commit follows; false if a commit waits for all there is."""
        was_converting = self.held.converting
        if not self.held.drop_open():
            return False
        if was_converting:
            self._decoder = None  # another thread is at work with it
        elif self._decoder is not None:
            self._decoder.reset()
        return True


def _bad_audio(command: AppendAudio, message: str) -> DuplexError:
    return DuplexError("bad_audio", message, param="audio", event_id=command.event_id)
