"""One response of a half-duplex conversation: the chunks of a turn, as the API's events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from omniduplex.audio.pcm import duration_ms
from omniduplex.audio.stream import OutputEncoder
from omniduplex.engine.conversation.history import (
    History,
    HistoryEntry,
    SpokenText,
    answer_item_id,
)
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.conversation.tool_calls import CallItem
from omniduplex.engine.turns import TurnChunk, TurnToolCall
from omniduplex.entrypoints.openai.turn_realtime.sound import ShownEvent, SoundDelta
from omniduplex.protocol.duplex import (
    AudioDone,
    ContentPart,
    ContentPartAdded,
    ContentPartDone,
    DuplexResponse,
    Item,
    ItemAdded,
    ItemCreated,
    ItemDone,
    ItemStatus,
    OutputItemAdded,
    OutputItemDone,
    RateLimitsUpdated,
    ResponseCreated,
    ResponseDone,
    ResponseStatus,
    StatusDetails,
    StatusError,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
    Usage,
    failure_kind,
)

RESPONSE_ERROR = "response_error"

_ITEM_STATUS: dict[ResponseStatus, ItemStatus] = {"completed": "completed"}


@dataclass(slots=True)
class Answer:
    """The response that is being made; opens with its first words, or its end, and ends once."""

    response_id: str
    conversation_id: str
    wanted: Wanted
    history: History
    new_id: Callable[[str], str]
    emit: Callable[[ShownEvent], None]
    _items: list[Item] = field(default_factory=list)
    _message: int | None = None
    """The place of the message among the items."""
    _spoken: SpokenText = field(default_factory=SpokenText)
    _text: str = ""
    _encoder: OutputEncoder | None = None
    _model_rate_hz: int = 0
    _samples_sent: int = 0
    _usage: Usage | None = None

    @property
    def item_id(self) -> str:
        """The id of the message."""
        return answer_item_id(self.response_id)

    @property
    def _speaks(self) -> bool:
        return "audio" in self.wanted.modalities

    def open(self) -> None:
        """Announce the response."""
        response = self._response("in_progress", None)
        self.emit(ResponseCreated(response_id=self.response_id, response=response))
        if self.wanted.in_history:
            self.history.reserve(self.item_id)

    # -- piece by piece ---------------------------------------------------------------------

    def take(self, chunk: TurnChunk) -> None:
        """Show the next piece.

        Raises:
            ValueError: for sound that does not say its rate, or changes it.
        """
        if not self._speaks:
            self._write(chunk.text)
        elif chunk.pcm:
            self._play(chunk)
        elif chunk.text:
            self._open_message()
            self._say(chunk.text, 0.0)
        for call in chunk.tool_calls:
            self._call(call)
        if chunk.usage:
            self._usage = Usage.of_text(chunk.usage.input_tokens, chunk.usage.output_tokens)

    def _write(self, text: str) -> None:
        if not text:
            return
        index = self._open_message()
        self._text += text
        self.emit(
            TextDelta(
                response_id=self.response_id, item_id=self.item_id, output_index=index, delta=text
            )
        )

    def _play(self, chunk: TurnChunk) -> None:
        encoder = self._encoder_at(chunk.sample_rate_hz)
        self._open_message()
        self._send_sound(encoder.process(chunk.pcm))
        self._say(chunk.text, duration_ms(len(chunk.pcm), chunk.sample_rate_hz))

    def _encoder_at(self, rate_hz: int) -> OutputEncoder:
        if rate_hz <= 0:
            raise ValueError("the model's audio came without its sample rate")
        if self._encoder is None:
            out = self.wanted.output_format
            self._model_rate_hz = rate_hz
            self._encoder = OutputEncoder(rate_hz, out.encoding, out.sample_rate_hz)
        if rate_hz != self._model_rate_hz:
            message = f"the model's audio changed from {self._model_rate_hz} to {rate_hz} Hz"
            raise ValueError(message)
        return self._encoder

    def _send_sound(self, delta: bytes) -> None:
        out = self.wanted.output_format
        self._samples_sent += out.sample_count(len(delta))
        self.emit(
            SoundDelta(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self._message or 0,
                delta=delta,
                format=out.encoding,
                sample_rate_hz=out.sample_rate_hz,
                audio_duration_ms=self._samples_sent * 1000 // out.sample_rate_hz,
            )
        )

    def _say(self, words: str, ms: float) -> None:
        self._spoken.add(words, ms)
        self.emit(
            TranscriptDelta(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self._message or 0,
                delta=words,
            )
        )

    def _call(self, call: TurnToolCall) -> None:
        if not (call.name and call.call_id):
            return  # Nobody can answer it, and the dialects of turns have no event for it.
        item = CallItem(
            item_id=self.new_id("item"),
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
        )
        index = self._add(item.opened())
        for event in item.told(self.response_id, index):
            self.emit(event)
        self._finish(index, item.completed())

    # -- items and parts --------------------------------------------------------------------

    def _open_message(self) -> int:
        if self._message is not None:
            return self._message
        item = Item(id=self.item_id, status="in_progress", role="assistant", content=())
        self._message = self._add(item, self._spoken)
        part = _part("audio", "") if self._speaks else _part("text", "")
        self.emit(
            ContentPartAdded(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self._message,
                part=part,
            )
        )
        return self._message

    def _add(self, item: Item, spoken: SpokenText | None = None) -> int:
        index = len(self._items)
        self._items.append(item)
        self.emit(OutputItemAdded(response_id=self.response_id, output_index=index, item=item))
        if self.wanted.in_history:
            entry = HistoryEntry(item, response_id=self.response_id, spoken=spoken)
            previous = self.history.add(entry)
            self.emit(ItemAdded(item=item, previous_item_id=previous))
            self.emit(ItemCreated(item=item, previous_item_id=previous))
        return index

    def _finish(self, index: int, item: Item) -> None:
        self._items[index] = item
        self.emit(OutputItemDone(response_id=self.response_id, output_index=index, item=item))
        if self.wanted.in_history:
            self.history.replace(item)
            previous = self.history.previous_of(item.id)
            self.emit(ItemDone(item=item, previous_item_id=previous))

    # -- the end ----------------------------------------------------------------------------

    def complete(self, *, whole: bool) -> None:
        """All of it is here, or as much as the token limit allows."""
        if self._encoder is not None and (tail := self._encoder.process(b"", last=True)):
            self._send_sound(tail)
            self._say("", 0.0)
        if not self._items:
            self._open_message()
        details = None if whole else StatusDetails(type="incomplete", reason="max_output_tokens")
        self._end("completed" if whole else "incomplete", details)

    def cancel(self, reason: str) -> None:
        """The client wants no more of it; what it got stays in the conversation."""
        self._end("cancelled", StatusDetails(type="cancelled", reason=reason))

    def fail(self, code: str) -> None:
        """It cannot be finished; what the client got stays in the conversation."""
        error = StatusError(type=failure_kind(code).error_class, code=code)
        self._end("failed", StatusDetails(type="failed", reason=code, error=error))

    def _end(self, status: ResponseStatus, details: StatusDetails | None) -> None:
        if self._message is not None:
            self._finish_message(self._message, _ITEM_STATUS.get(status, "incomplete"))
        response = self._response(status, details)
        self.emit(ResponseDone(response_id=self.response_id, response=response))
        self.emit(RateLimitsUpdated())

    def _finish_message(self, index: int, status: ItemStatus) -> None:
        response_id, item_id = self.response_id, self.item_id
        if self._speaks:
            words = self._spoken.text
            if self._encoder is not None:
                self.emit(AudioDone(response_id=response_id, item_id=item_id, output_index=index))
            if words:
                self.emit(
                    TranscriptDone(
                        response_id=response_id,
                        item_id=item_id,
                        output_index=index,
                        transcript=words,
                    )
                )
            part, content = _part("audio", words), _part("output_audio", words)
        else:
            words = self._text
            self.emit(
                TextDone(response_id=response_id, item_id=item_id, output_index=index, text=words)
            )
            part, content = _part("text", words), _part("output_text", words)
        self.emit(
            ContentPartDone(response_id=response_id, item_id=item_id, output_index=index, part=part)
        )
        done = msgspec.structs.replace(self._items[index], status=status, content=(content,))
        self._finish(index, done)

    def _response(self, status: ResponseStatus, details: StatusDetails | None) -> DuplexResponse:
        return DuplexResponse(
            id=self.response_id,
            status=status,
            status_details=details,
            output=tuple(self._items) if status != "in_progress" else (),
            output_modalities=self.wanted.modalities,
            modalities=self.wanted.modalities,
            conversation_id=self.conversation_id if self.wanted.in_history else None,
            metadata=self.wanted.metadata,
            usage=self._usage,
        )


def _part(kind: str, words: str) -> ContentPart:
    """A part of an answer: texts have `text`, sounds a `transcript`."""
    if kind.endswith("text"):
        return ContentPart(type=kind, text=words)
    return ContentPart(type=kind, transcript=words)
