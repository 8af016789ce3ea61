"""One response of a half-duplex conversation: the chunks of a turn, as the API's events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omniduplex.audio.pcm import duration_ms
from omniduplex.audio.stream import OutputEncoder
from omniduplex.engine.conversation.endings import Ending, item_status, status_details
from omniduplex.engine.conversation.history import History, SpokenText, answer_item_id
from omniduplex.engine.conversation.message_part import MessagePart
from omniduplex.engine.conversation.response_items import ResponseItems
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.conversation.sound_pieces import sound_pieces
from omniduplex.engine.conversation.tool_calls import CallItem
from omniduplex.engine.turns import TurnChunk, TurnToolCall
from omniduplex.entrypoints.openai.turn_realtime.sound import ShownEvent, SoundDelta
from omniduplex.protocol.duplex import (
    RateLimitsUpdated,
    ResponseCreated,
    ResponseDone,
    Usage,
)

RESPONSE_ERROR = "response_error"


@dataclass(slots=True)
class Answer:
    """The response that is being made; opens with its first words, or its end, and ends once."""

    response_id: str
    conversation_id: str
    wanted: Wanted
    history: History
    new_id: Callable[[str], str]
    emit: Callable[[ShownEvent], None]
    _items: ResponseItems = field(init=False)
    _message: MessagePart | None = None
    """The one part of the message, which opens with it."""
    _spoken: SpokenText = field(default_factory=SpokenText)
    _encoder: OutputEncoder | None = None
    _model_rate_hz: int = 0
    _samples_sent: int = 0
    _usage: Usage | None = None

    def __post_init__(self) -> None:
        self._items = ResponseItems(
            self.response_id,
            self.conversation_id,
            self.wanted,
            self.history,
            self.emit,
            cause_first=True,
        )

    @property
    def _speaks(self) -> bool:
        return "audio" in self.wanted.modalities

    def open(self) -> None:
        """Announce the response."""
        response = self._items.response("in_progress")
        self.emit(ResponseCreated(response_id=self.response_id, response=response))
        if self.wanted.in_history:
            self.history.reserve(answer_item_id(self.response_id))

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
            self._say(self._opened_message(), chunk.text, 0.0)
        for call in chunk.tool_calls:
            self._call(call)
        if chunk.usage:
            self._usage = Usage.of_text(chunk.usage.input_tokens, chunk.usage.output_tokens)

    def _write(self, text: str) -> None:
        if text:
            self._spoken.written += text
            self._opened_message().say(text)

    def _play(self, chunk: TurnChunk) -> None:
        encoder = self._encoder_at(chunk.sample_rate_hz)
        message, rate_hz = self._opened_message(), chunk.sample_rate_hz
        *others, last = sound_pieces(chunk.pcm, rate_hz, self.wanted.output_format)
        for pcm in others:
            self._send_sound(message, encoder.process(pcm))
            self._say(message, "", duration_ms(len(pcm), rate_hz))
        # The words end where their sound does.
        self._send_sound(message, encoder.process(last))
        self._say(message, chunk.text, duration_ms(len(last), rate_hz))

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

    def _send_sound(self, message: MessagePart, delta: bytes) -> None:
        out = self.wanted.output_format
        self._samples_sent += out.sample_count(len(delta))
        self.emit(
            SoundDelta(
                response_id=message.response_id,
                item_id=message.item_id,
                output_index=message.output_index,
                delta=delta,
                format=out.encoding,
                sample_rate_hz=out.sample_rate_hz,
                audio_duration_ms=self._samples_sent * 1000 // out.sample_rate_hz,
            )
        )

    def _say(self, message: MessagePart, words: str, ms: float) -> None:
        self._spoken.add(words, ms)
        message.say(words)

    def _call(self, call: TurnToolCall) -> None:
        if not (call.name and call.call_id):
            return  # Nobody can answer it, and the dialects of turns have no event for it.
        self._items.add_call(
            CallItem(
                item_id=self.new_id("item"),
                call_id=call.call_id,
                name=call.name,
                arguments=call.arguments,
            )
        )

    def _opened_message(self) -> MessagePart:
        if self._message is None:
            index = self._items.open_message(self._spoken)
            item_id = answer_item_id(self.response_id)
            self._message = MessagePart(
                self.response_id,
                item_id,
                index,
                content_index=0,
                kind="audio" if self._speaks else "text",
                emit=self.emit,
            )
            self._message.open()
        return self._message

    # -- the end ----------------------------------------------------------------------------

    def complete(self, *, whole: bool) -> None:
        """All of it is here, or as much as the token limit allows."""
        if not self._items:
            self._opened_message()
        tail = self._encoder.process(b"", last=True) if self._encoder else b""
        if self._message is not None and tail:
            self._send_sound(self._message, tail)
            self._say(self._message, "", 0.0)
        if whole:
            self._end("completed")
        else:
            self._end("incomplete", "max_output_tokens")

    def cancel(self, reason: str) -> None:
        """The client wants no more of it; what it got stays in the conversation."""
        self._end("cancelled", reason)

    def fail(self, code: str) -> None:
        """It cannot be finished; what the client got stays in the conversation."""
        self._end("failed", code)

    def _end(self, ending: Ending, reason: str | None = None) -> None:
        if (message := self._message) is not None:
            message.close(sounded=self._encoder is not None)
            status, content = item_status(ending), (message.content(),)
            self._items.finish_message(message.output_index, status, content)
        details = status_details(ending, reason)
        response = self._items.response(ending, details, usage=self._usage)
        self.emit(ResponseDone(response_id=self.response_id, response=response))
        self.emit(RateLimitsUpdated())
