"""The turn that the user is in: what the model heard of it so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from omniduplex.audio.pcm import byte_count, duration_ms
from omniduplex.engine.duplex.session.continuation import Continuation
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.input_clock import InputClock
from omniduplex.protocol.duplex import SpeechStarted, SpeechStopped

MAX_PIECE_BYTES = 8 * 1024 * 1024
"""More goes to a model in pieces: a frame to its process has a limit."""


class Given(msgspec.Struct, frozen=True):
    """What the model hears now, and if that is speech of the user's turn, of which `words`.

    `silence` in bytes stands for what it does not hear, so that its input clock goes on, and
    `free_bytes` of the room of what came in are not needed any more.
    """

    pcm: bytes = b""
    silence: int = 0
    speech: bool = False
    words: tuple[str, ...] = ()
    force_listen: bool = False
    free_bytes: int = 0


@dataclass(slots=True)
class Heard:
    """What is known of one turn; `ignored_ms` of sound over it are no part of it.

    `words` are what its client says was spoken, piece by piece.
    """

    item_id: str | None = None
    started: bool = False
    buffered_ms: float = 0.0
    ignored_ms: float = 0.0
    speech: bool = False
    words: list[str] = field(default_factory=list)

    @property
    def transcript(self) -> str | None:
        """What was said, as its client knows it; None when the model is to find out."""
        return " ".join(self.words) or None


class OpenTurn:
    """What was heard since the last commit or clear; a new one begins when it is over."""

    def __init__(self, core: SessionCore, continuation: Continuation) -> None:
        self._core = core
        self._continuation = continuation
        self.heard = Heard()
        self._clock = InputClock()
        self._fed_ms = 0.0

    @property
    def clock(self) -> InputClock:
        """The model's time and its client's, as of now."""
        fed_ms = self._continuation.fed_ms
        if fed_ms > self._fed_ms:
            self._clock.fed(fed_ms - self._fed_ms)
            self._fed_ms = fed_ms
        return self._clock

    @property
    def item_id(self) -> str:
        """The id of the item that this turn will be."""
        if self.heard.item_id is None:
            self.heard.item_id = self._core.new_id("item")
            self._core.history.reserve(self.heard.item_id)
        return self.heard.item_id

    def length_ms(self, size: int) -> float:
        """How long so many bytes last for the model."""
        return duration_ms(size, self._core.plugin.input_rate_hz)

    def size_bytes(self, length_ms: float) -> int:
        """How many bytes the model needs for so long."""
        return byte_count(length_ms, self._core.plugin.input_rate_hz)

    def give(self, given: Given) -> None:
        """Let the model hear what belongs to the turn, and silence for what does not."""
        model, fence, heard = self._core.model, self._core.fence, self.heard
        self.clock.given(self.length_ms(given.silence + len(given.pcm)))
        if given.silence:
            self._continuation.fed()
            heard.ignored_ms += self.length_ms(given.silence)
            self._core.run(model.plan_append(fence, bytes(given.silence)))
        if not given.pcm:
            return
        self._continuation.fed()
        if heard.ignored_ms and not heard.buffered_ms and not self._core.config.decides_turns:
            self._core.run(model.plan_clear(fence))  # the turn begins here, not with that silence
        heard.buffered_ms += self.length_ms(len(given.pcm))
        heard.speech |= given.speech
        for words in given.words:
            if words not in heard.words[-1:]:  # a hint may come with each append of its sound
                heard.words.append(words)
        for pcm in _pieces(given.pcm):
            self._core.run(model.plan_append(fence, pcm, force_listen=given.force_listen))

    def announce(self, audio_start_ms: int) -> None:
        """Tell the client that the user speaks."""
        self.heard.started = True
        self._core.emit(SpeechStarted(audio_start_ms=audio_start_ms, item_id=self.item_id))

    def fall_silent(self, audio_end_ms: int) -> None:
        """Tell the client that the user speaks no more, if it was told of it."""
        if self.heard.started:
            self.heard.started = False
            self._core.emit(SpeechStopped(audio_end_ms=audio_end_ms, item_id=self.item_id))

    def over(self) -> Heard:
        """Begin a new turn; what was heard of the one before."""
        heard, self.heard = self.heard, Heard()
        return heard


def _pieces(pcm: bytes) -> Sequence[bytes]:
    if len(pcm) <= MAX_PIECE_BYTES:
        return (pcm,)
    return [pcm[at : at + MAX_PIECE_BYTES] for at in range(0, len(pcm), MAX_PIECE_BYTES)]
