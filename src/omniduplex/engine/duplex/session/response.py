"""One assistant utterance on the wire: opens its parts, sends its deltas, ends exactly once."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from omniduplex.audio.pcm import duration_ms
from omniduplex.audio.stream import OutputEncoder
from omniduplex.engine.conversation.history import HistoryEntry, SpokenText, answer_item_id
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.duplex.model_events import FunctionCall, ResponseAudio
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.endings import Ending, item_status, status_details
from omniduplex.engine.duplex.session.playback_ledger import PlaybackRecord
from omniduplex.engine.duplex.session.prompts import heard_text
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioDone,
    ContentPart,
    ContentPartAdded,
    ContentPartDone,
    DeltaMetadata,
    DuplexResponse,
    FunctionCallDelta,
    FunctionCallDone,
    FunctionCallFacts,
    Item,
    ItemAdded,
    ItemCreated,
    ItemDone,
    MalformedFunctionCall,
    OutputItemAdded,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    ResponseFacts,
    ResponseStatus,
    RuntimeMetadata,
    SpeakDecision,
    SpeakMetadata,
    StatusDetails,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
    Usage,
)


@dataclass(slots=True)
class Response:
    """The response that the client sees; `key` is what the model calls it.

    With tools at hand the message item opens with its first words, since the model may call one
    instead; otherwise it opens with the response (wire contract, section 7.3).
    """

    core: SessionCore
    response_id: str
    key: str
    wanted: Wanted
    spoken: SpokenText = field(default_factory=SpokenText)
    text: str = ""
    usage: Usage | None = None
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    turn_id: int = 0
    record: PlaybackRecord = field(init=False)
    _items: list[Item] = field(default_factory=list)
    _message_index: int | None = None
    _audio_part: bool = False
    _text_part: bool = False
    _spoke: bool = False
    _encoder: OutputEncoder | None = None

    @property
    def item_id(self) -> str:
        """The id of the assistant's message item."""
        return answer_item_id(self.response_id)

    def open(self) -> None:
        """Announce the response."""
        self.record = self.core.playback.open(self.response_id)
        self.turn_id = self.core.turn_id
        facts = ResponseFacts(
            type="response.created",
            session_id=self.core.session_id,
            response_id=self.response_id,
            epoch=self.core.epoch,
            turn_id=self.turn_id,
        )
        response = self._response("in_progress", None, facts)
        self.core.emit(ResponseCreated(response_id=self.response_id, response=response))
        self.core.history.reserve(self.item_id)
        if not self.wanted.tools:
            self._open_message()

    def _open_message(self) -> None:
        if self._message_index is not None:
            return
        item = Item(id=self.item_id, status="in_progress", role="assistant", content=())
        self._message_index = self._open_item(item, self.spoken)
        if "audio" in self.wanted.modalities:
            self._audio_part = True
            self.core.emit(self._part_added(0, ContentPart(type="audio", transcript="")))

    def _open_item(self, item: Item, spoken: SpokenText | None = None) -> int:
        index = len(self._items)
        self._items.append(item)
        added = OutputItemAdded(response_id=self.response_id, output_index=index, item=item)
        # The OpenAI API announces the output item first, the contract the conversation's item.
        if self.core.config.dialect.is_openai:
            self.core.emit(added)
        if self.wanted.in_history:
            entry = HistoryEntry(item, response_id=self.response_id, spoken=spoken)
            previous = self.core.history.add(entry)
            self.core.emit(ItemAdded(item=item, previous_item_id=previous))
            self.core.emit(ItemCreated(item=item, previous_item_id=previous))
        if not self.core.config.dialect.is_openai:
            self.core.emit(added)
        return index

    def _part_added(self, index: int, part: ContentPart) -> ContentPartAdded:
        return ContentPartAdded(
            response_id=self.response_id,
            item_id=self.item_id,
            output_index=self._message_index or 0,
            content_index=index,
            part=part,
        )

    def add_audio(self, event: ResponseAudio) -> None:
        """Send audio in the session's output format, and the words in it.

        Of a response that is text alone, only the words are sent.
        """
        if "audio" not in self.wanted.modalities:
            self.add_text(event.text)
            return
        self._open_message()
        if self._encoder is None:
            out = self.wanted.output_format
            if out.encoding == "pcm_f32le":
                raise ValueError("no output in pcm_f32le")
            self._encoder = OutputEncoder(event.sample_rate_hz, out.encoding, out.rate_hz)
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
                output_index=self._message_index or 0,
                metadata=metadata,
            )
        )

    def _send_audio(self, delta: bytes, text: str) -> None:
        index = self._message_index or 0
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
                output_index=index,
                delta=delta,
                format=self.wanted.output_format.encoding,
                sample_rate_hz=self.wanted.output_format.rate_hz,
                metadata=metadata,
            )
        )
        self.core.emit(
            TranscriptDelta(
                response_id=self.response_id, item_id=self.item_id, output_index=index, delta=text
            )
        )

    def add_text(self, text: str) -> None:
        """Send text that is not spoken."""
        if not text:
            return
        self._open_message()
        if not self._text_part:
            self._text_part = True
            self.core.emit(self._part_added(self._text_index, ContentPart(type="text", text="")))
        self.text += text
        self.core.emit(
            TextDelta(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self._message_index or 0,
                content_index=self._text_index,
                delta=text,
            )
        )

    @property
    def _text_index(self) -> int:
        return 1 if self._audio_part else 0

    def add_function_call(self, call: FunctionCall) -> None:
        """Send a whole tool call as an item of its own."""
        if not (call.name and call.call_id):
            self._tell_malformed(call)
            return
        item = Item(
            id=self.core.new_id("item"),
            type="function_call",
            status="in_progress",
            name=call.name,
            call_id=call.call_id,
            arguments="",
        )
        index = self._open_item(item)
        self.core.emit(
            FunctionCallDelta(
                response_id=self.response_id,
                item_id=item.id,
                output_index=index,
                call_id=call.call_id,
                delta=call.arguments,
            )
        )
        self.core.emit(
            FunctionCallDone(
                response_id=self.response_id,
                item_id=item.id,
                output_index=index,
                call_id=call.call_id,
                name=call.name,
                arguments=call.arguments,
            )
        )
        done = msgspec.structs.replace(item, status="completed", arguments=call.arguments)
        self._finish_item(index, done)

    def _tell_malformed(self, call: FunctionCall) -> None:
        """Show a tool call that lacks its name or its id: nobody can answer it."""
        facts = FunctionCallFacts(
            session_id=self.core.session_id,
            epoch=self.core.epoch,
            call_id=call.call_id or None,
            name=call.name or None,
            arguments=call.arguments,
        )
        self.core.emit(MalformedFunctionCall(event=facts))

    def finish(self, ending: Ending, reason: str | None = None) -> None:
        """End the response: open parts, then items, then the response itself."""
        if ending in ("completed", "incomplete"):
            self._flush_encoder()
        if ending == "completed":
            self._open_message_if_empty()
        if self._message_index is not None:
            self._finish_message(ending)
        details = status_details(ending, reason)
        facts = ResponseFacts(
            type="response.done",
            session_id=self.core.session_id,
            response_id=self.response_id,
            epoch=self.core.epoch,
            committed=self.wanted.in_history and ending != "failed",
            playback=self.record.cursor(),
            reason=reason or msgspec.UNSET,
            omniduplex=(
                RuntimeMetadata(stage_metrics=self.metrics) if self.metrics else msgspec.UNSET
            ),
        )
        response = self._response(ending, details, facts)
        self.core.emit(ResponseDone(response_id=self.response_id, response=response))
        self.core.emit_rate_limits()
        self.core.idle.answered(self.core.now)

    def _flush_encoder(self) -> None:
        if self._encoder is None:
            return
        tail = self._encoder.process(b"", last=True)
        if tail:
            self._send_audio(tail, "")

    def _open_message_if_empty(self) -> None:
        if not self._items:
            self._open_message()

    def _finish_message(self, ending: Ending) -> None:
        index = self._message_index or 0
        if self._audio_part:
            self._finish_audio_part(index)
        if self._text_part:
            self._finish_text_part(index)
        item = msgspec.structs.replace(
            self._items[index], status=item_status(ending), content=self._content(ending)
        )
        self._finish_item(index, item)

    def _finish_audio_part(self, index: int) -> None:
        response_id, item_id = self.response_id, self.item_id
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
        self._part_done(index, 0, ContentPart(type="audio", transcript=transcript))

    def _finish_text_part(self, index: int) -> None:
        self.core.emit(
            TextDone(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=index,
                content_index=self._text_index,
                text=self.text,
            )
        )
        self._part_done(index, self._text_index, ContentPart(type="text", text=self.text))

    def _part_done(self, index: int, content_index: int, part: ContentPart) -> None:
        self.core.emit(
            ContentPartDone(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=index,
                content_index=content_index,
                part=part,
            )
        )

    def _content(self, ending: Ending) -> tuple[ContentPart, ...]:
        parts: list[ContentPart] = []
        if self._audio_part and (self._spoke or not self._text_part):
            transcript = self.spoken.text
            if self.record.cut_off and self.wanted.in_history:
                transcript = heard_text(self.core.history.get(self.item_id), self.core.playback)
            parts.append(ContentPart(type="output_audio", transcript=transcript))
        if self._text_part:
            parts.append(ContentPart(type="output_text", text=self.text))
        return tuple(parts)

    def _finish_item(self, index: int, item: Item) -> None:
        self._items[index] = item
        done = OutputItemDone(response_id=self.response_id, output_index=index, item=item)
        self.core.emit(done)
        if self.wanted.in_history:
            self.core.history.replace(item)
            previous = self.core.history.previous_of(item.id)
            self.core.emit(ItemDone(item=item, previous_item_id=previous))

    def _response(
        self, status: ResponseStatus, details: StatusDetails | None, facts: ResponseFacts
    ) -> DuplexResponse:
        return DuplexResponse(
            id=self.response_id,
            status=status,
            status_details=details,
            output=tuple(self._items) if status != "in_progress" else (),
            modalities=self.wanted.modalities,
            output_modalities=self.wanted.modalities,
            conversation_id=self.core.conversation_id if self.wanted.in_history else None,
            metadata=self.wanted.metadata,
            usage=self.usage,
            facts=facts,
        )
