"""One assistant utterance on the wire: opens its items, and ends exactly once."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import UNSET, UnsetType

from omniduplex.engine.conversation.endings import Ending, item_status, status_details
from omniduplex.engine.conversation.history import SpokenText, answer_item_id
from omniduplex.engine.conversation.response_items import ResponseItems
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.conversation.tool_calls import CallItem
from omniduplex.engine.duplex.model_events import FunctionCall, ResponseAudio
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.message_item import MessageItem
from omniduplex.engine.duplex.session.playback_ledger import PlaybackRecord
from omniduplex.engine.duplex.session.response_timing import ResponseTiming
from omniduplex.protocol.duplex import (
    FunctionCallFacts,
    MalformedFunctionCall,
    ResponseCreated,
    ResponseDone,
    ResponseFacts,
    RuntimeMetadata,
    Usage,
)


@dataclass(slots=True)
class Response:
    """The response that the client sees; `key` is what the model calls it.

    With tools at hand the message item opens with its first words, since the model may call one
    instead; otherwise it opens with the response (wire contract, section 7.3). What is
    `out_of_band` is made beside the conversation, which knows nothing of it. `awaited` are the user
    items that it answers and whose words are not known yet: until then the model is not asked.
    """

    core: SessionCore
    response_id: str
    key: str
    wanted: Wanted
    out_of_band: bool = False
    awaited: set[str] = field(default_factory=set)
    usage: Usage | None = None
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    turn_id: int = 0
    record: PlaybackRecord = field(init=False)
    _timing: ResponseTiming = field(init=False)
    _items: ResponseItems = field(init=False)
    _message: MessageItem | None = None

    def __post_init__(self) -> None:
        self._items = ResponseItems(
            self.response_id,
            self.core.conversation_id,
            self.wanted,
            self.core.history,
            self.core.emit,
            cause_first=not self.core.config.knows_extensions,
        )

    def open(self) -> None:
        """Announce the response."""
        self.record = self._opened_record()
        self.turn_id = self.core.turn_id
        self._timing = ResponseTiming(self.core.now)
        facts = ResponseFacts(
            type="response.created",
            session_id=self.core.session_id,
            response_id=self.response_id,
            epoch=self.core.epoch,
            turn_id=self.turn_id,
        )
        response = self._items.response("in_progress", facts=facts)
        self.core.emit(ResponseCreated(response_id=self.response_id, response=response))
        if not self.wanted.tools:
            self._opened_message()

    def _opened_record(self) -> PlaybackRecord:
        if self.out_of_band:
            return self.core.playback.open_out_of_band(self.response_id)
        self.core.history.reserve(answer_item_id(self.response_id))
        record = self.core.playback.open(self.response_id)
        record.interruptible = self.wanted.interruptible
        return record

    # -- the message ------------------------------------------------------------------------

    def add_audio(self, event: ResponseAudio) -> None:
        """Send audio and the words in it; of a response that is text alone, only the words."""
        if "audio" in self.wanted.modalities:
            self._timing.came(self.core.now, audio=bool(event.pcm), text=bool(event.text))
            self._opened_message().add_audio(event)
        else:
            self.add_text(event.text)

    def add_text(self, text: str) -> None:
        """Send text that is not spoken."""
        if text:
            self._timing.came(self.core.now, audio=False, text=True)
            self._opened_message().add_text(text)

    def _opened_message(self) -> MessageItem:
        if self._message is None:
            spoken = SpokenText()
            index = self._items.open_message(spoken)
            self._message = MessageItem(
                self.core, self.response_id, self.wanted, self.record, index, spoken
            )
            self._message.open()
        return self._message

    # -- tools ------------------------------------------------------------------------------

    def add_function_call(self, call: FunctionCall) -> None:
        """Send a whole tool call as an item of its own."""
        if not (call.name and call.call_id):
            self._tell_malformed(call)
            return
        self._items.add_call(
            CallItem(
                item_id=self.core.new_id("item"),
                call_id=call.call_id,
                name=call.name,
                arguments=call.arguments,
            )
        )

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

    # -- the end ----------------------------------------------------------------------------

    def finish(self, ending: Ending, reason: str | None = None, *, committed: bool = True) -> None:
        """End the response: open parts, then items, then the response itself.

        What is not `committed` leaves the conversation, as what has failed does.
        """
        if ending == "completed" and not self._items:
            self._opened_message()
        if self._message is not None:
            index, content = self._message.output_index, self._message.finish(ending)
            self._items.finish_message(index, item_status(ending), content)
        facts = ResponseFacts(
            type="response.done",
            session_id=self.core.session_id,
            response_id=self.response_id,
            epoch=self.core.epoch,
            committed=committed and self.wanted.in_history and ending != "failed",
            playback=self.record.cursor(),
            reason=reason or UNSET,
            omniduplex=self._measured(),
        )
        details = status_details(ending, reason)
        response = self._items.response(ending, details, usage=self.usage, facts=facts)
        self.core.emit(ResponseDone(response_id=self.response_id, response=response))
        self.core.emit_rate_limits()
        if not self.out_of_band:
            self.core.idle.answered(self.core.now)

    def _measured(self) -> RuntimeMetadata | UnsetType:
        timing = self._timing.metrics(self.record.generated_ms)
        if not self.metrics and timing is UNSET:
            return UNSET
        return RuntimeMetadata(stage_metrics=self.metrics, response_request_metrics=timing)
