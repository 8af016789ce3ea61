"""The message of one response: its audio and its text, piece by piece, and as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from omniduplex.audio.pcm import duration_ms
from omniduplex.audio.stream import OutputEncoder
from omniduplex.engine.conversation.endings import Ending
from omniduplex.engine.conversation.history import SpokenText, answer_item_id
from omniduplex.engine.conversation.message_part import MessagePart
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.conversation.sound_pieces import sound_pieces
from omniduplex.engine.duplex.model_events import ResponseAudio
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.playback_ledger import PlaybackRecord
from omniduplex.engine.duplex.session.prompts import heard_text
from omniduplex.protocol.duplex import (
    AudioDelta,
    ContentPart,
    DeltaMetadata,
    SpeakDecision,
    SpeakMetadata,
)


@dataclass(slots=True)
class MessageItem:
    """What the assistant says in a response: parts that open once, grow, and are done once."""

    core: SessionCore
    response_id: str
    wanted: Wanted
    record: PlaybackRecord
    output_index: int
    spoken: SpokenText
    _spoke: bool = False
    _encoder: OutputEncoder | None = None
    item_id: str = field(init=False)
    _audio: MessagePart = field(init=False)
    _text: MessagePart = field(init=False)

    def __post_init__(self) -> None:
        self.item_id = answer_item_id(self.response_id)
        place = (self.response_id, self.item_id, self.output_index)
        self._audio = MessagePart(*place, content_index=0, kind="audio", emit=self.core.emit)
        beside = 1 if "audio" in self.wanted.modalities else 0
        self._text = MessagePart(*place, content_index=beside, kind="text", emit=self.core.emit)

    def open(self) -> None:
        """Open the audio part, where audio is wanted; a text part opens with its first words."""
        if "audio" in self.wanted.modalities:
            self._audio.open()

    # -- piece by piece ---------------------------------------------------------------------

    def add_audio(self, event: ResponseAudio) -> None:
        """Send audio in the session's output format, and the words in it."""
        out, rate_hz = self.wanted.output_format, event.sample_rate_hz
        if self._encoder is None:
            self._encoder = OutputEncoder(rate_hz, out.encoding, out.sample_rate_hz)
        *others, last = sound_pieces(event.pcm, rate_hz, out)
        for pcm in others:
            self._add_sound(self._encoder, pcm, rate_hz, "")
        # The words end where their sound does.
        self._add_sound(self._encoder, last, rate_hz, event.text)

    def _add_sound(self, encoder: OutputEncoder, pcm: bytes, rate_hz: int, text: str) -> None:
        delta = encoder.process(pcm)
        # The ledger counts the model's own audio: what a resampler holds back comes with the next.
        spoken_ms = duration_ms(len(pcm), rate_hz)
        self.spoken.add(text, spoken_ms)
        self.core.playback.add_audio(self.record, spoken_ms, self.core.now)
        self.core.loudspeaker.start(self.record)
        self._speak_once()
        self._send_audio(delta, text)

    def _speak_once(self) -> None:
        if self._spoke:
            return
        self._spoke = True
        metadata = SpeakMetadata(session_id=self.core.session_id, epoch=self.core.epoch)
        self.core.emit(
            SpeakDecision(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                metadata=metadata,
            )
        )

    def _send_audio(self, delta: bytes, text: str) -> None:
        metadata = DeltaMetadata(
            session_id=self.core.session_id,
            epoch=self.core.epoch,
            audio_duration_ms=int(self.record.generated_ms),
            audio_text_marks=tuple(self.spoken.marks[-1:]) if text else (),
            playback=self.record.cursor(),
        )
        self.core.emit(
            AudioDelta(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                delta=delta,
                format=self.wanted.output_format.encoding,
                sample_rate_hz=self.wanted.output_format.sample_rate_hz,
                metadata=metadata,
            )
        )
        self._audio.say(text)

    def add_text(self, text: str) -> None:
        """Send text that is not spoken."""
        if not self._text.opened:
            self._text.open()
        self.spoken.written += text
        self._text.say(text)

    # -- as a whole -------------------------------------------------------------------------

    def finish(self, ending: Ending) -> tuple[ContentPart, ...]:
        """Close the open parts; what the item holds, as far as the user heard it."""
        if ending in ("completed", "incomplete"):
            self._flush_encoder()
        if self._audio.opened:
            self._audio.close(sounded=self._spoke)
        if self._text.opened:
            self._text.close()
        return self._content()

    def _flush_encoder(self) -> None:
        tail = b"" if self._encoder is None else self._encoder.process(b"", last=True)
        if tail:
            self._send_audio(tail, "")

    def _content(self) -> tuple[ContentPart, ...]:
        parts: list[ContentPart] = []
        if self._audio.opened and (self._spoke or not self._text.opened):
            heard = None
            if self.record.cut_off and self.wanted.in_history:
                heard = heard_text(self.core.history.get(self.item_id), self.core.playback)
            parts.append(self._audio.content(heard))
        if self._text.opened:
            parts.append(self._text.content())
        return tuple(parts)
