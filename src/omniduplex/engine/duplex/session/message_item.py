"""The message of one response: its audio and its text, piece by piece, and as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from omniduplex.audio.pcm import duration_ms
from omniduplex.audio.stream import OutputEncoder
from omniduplex.engine.conversation.history import SpokenText, answer_item_id
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.duplex.model_events import ResponseAudio
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.endings import Ending
from omniduplex.engine.duplex.session.playback_ledger import PlaybackRecord
from omniduplex.engine.duplex.session.prompts import heard_text
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioDone,
    ContentPart,
    ContentPartAdded,
    ContentPartDone,
    DeltaMetadata,
    SpeakDecision,
    SpeakMetadata,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
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
    _text: str = ""
    _audio_part: bool = False
    _text_part: bool = False
    _spoke: bool = False
    _encoder: OutputEncoder | None = None
    item_id: str = field(init=False)

    def __post_init__(self) -> None:
        self.item_id = answer_item_id(self.response_id)

    def open(self) -> None:
        """Open the audio part, where audio is wanted; a text part opens with its first words."""
        if "audio" in self.wanted.modalities:
            self._audio_part = True
            self._open_part(0, ContentPart(type="audio", transcript=""))

    def _open_part(self, content_index: int, part: ContentPart) -> None:
        self.core.emit(
            ContentPartAdded(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                content_index=content_index,
                part=part,
            )
        )

    # -- piece by piece ---------------------------------------------------------------------

    def add_audio(self, event: ResponseAudio) -> None:
        """Send audio in the session's output format, and the words in it."""
        if self._encoder is None:
            out = self.wanted.output_format
            self._encoder = OutputEncoder(event.sample_rate_hz, out.encoding, out.sample_rate_hz)
        delta = self._encoder.process(event.pcm)
        # The ledger counts the model's own audio: what a resampler holds back comes with the next.
        spoken_ms = duration_ms(len(event.pcm), event.sample_rate_hz)
        self.spoken.add(event.text, spoken_ms)
        self.core.playback.add_audio(self.record, spoken_ms, self.core.now)
        self.core.loudspeaker.start(self.record)
        self._speak_once()
        self._send_audio(delta, event.text)

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
        self.core.emit(
            TranscriptDelta(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                delta=text,
            )
        )

    def add_text(self, text: str) -> None:
        """Send text that is not spoken."""
        if not self._text_part:
            self._text_part = True
            self._open_part(self._text_index, ContentPart(type="text", text=""))
        self._text += text
        self.core.emit(
            TextDelta(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                content_index=self._text_index,
                delta=text,
            )
        )

    @property
    def _text_index(self) -> int:
        return 1 if self._audio_part else 0

    # -- as a whole -------------------------------------------------------------------------

    def finish(self, ending: Ending) -> tuple[ContentPart, ...]:
        """Close the open parts; what the item holds, as far as the user heard it."""
        if ending in ("completed", "incomplete"):
            self._flush_encoder()
        if self._audio_part:
            self._finish_audio_part()
        if self._text_part:
            self._finish_text_part()
        return self._content()

    def _flush_encoder(self) -> None:
        tail = b"" if self._encoder is None else self._encoder.process(b"", last=True)
        if tail:
            self._send_audio(tail, "")

    def _finish_audio_part(self) -> None:
        response_id, item_id, index = self.response_id, self.item_id, self.output_index
        transcript = self.spoken.text
        if self._spoke:
            self.core.emit(AudioDone(response_id=response_id, item_id=item_id, output_index=index))
        if transcript:
            self.core.emit(
                TranscriptDone(
                    response_id=response_id,
                    item_id=item_id,
                    output_index=index,
                    transcript=transcript,
                )
            )
        self._part_done(0, ContentPart(type="audio", transcript=transcript))

    def _finish_text_part(self) -> None:
        self.core.emit(
            TextDone(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                content_index=self._text_index,
                text=self._text,
            )
        )
        self._part_done(self._text_index, ContentPart(type="text", text=self._text))

    def _part_done(self, content_index: int, part: ContentPart) -> None:
        self.core.emit(
            ContentPartDone(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                content_index=content_index,
                part=part,
            )
        )

    def _content(self) -> tuple[ContentPart, ...]:
        parts: list[ContentPart] = []
        if self._audio_part and (self._spoke or not self._text_part):
            transcript = self.spoken.text
            if self.record.cut_off and self.wanted.in_history:
                transcript = heard_text(self.core.history.get(self.item_id), self.core.playback)
            parts.append(ContentPart(type="output_audio", transcript=transcript))
        if self._text_part:
            parts.append(ContentPart(type="output_text", text=self._text))
        return tuple(parts)
