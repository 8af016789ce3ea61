"""Tier 1 server events: the OpenAI Realtime API's own, as frozen structs tagged by wire type."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.realtime.items import ContentPart, Item
from omniduplex.protocol.realtime.session import RealtimeSessionObject


class RealtimeEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of every server event; the codec stamps id and sequence number when it encodes.

    Whatever an event is about can be asked of any: None is what it does not have.
    """

    event_id: str | UnsetType = UNSET
    server_event_seq: int | UnsetType = UNSET

    @property
    def type(self) -> str:
        """The event's name on the wire."""
        return str(self.__struct_config__.tag)

    @property
    def session_id(self) -> str | None:
        """The session that it names."""
        return None

    @property
    def response_id(self) -> str | None:
        """The response that it is about."""
        return None

    @property
    def item_id(self) -> str | None:
        """The item that it is about."""
        return None

    @property
    def audio(self) -> bytes | None:
        """The audio in it, out of base64."""
        return None

    @property
    def text(self) -> str | None:
        """The words in it, of an answer or of the user."""
        return None

    @property
    def raw(self) -> dict[str, Any]:
        """The event as JSON has it, like that of an event this vocabulary does not have."""
        return self.to_realtime()

    def to_realtime(self) -> dict[str, Any]:
        """The event as the JSON object of the wire: audio in base64, absent fields left out."""
        wire: dict[str, Any] = msgspec.to_builtins(self)
        return wire


class SessionCreated(RealtimeEvent, frozen=True, kw_only=True, tag="session.created"):
    """The session is open; always its first event."""

    session: RealtimeSessionObject


class SessionUpdated(RealtimeEvent, frozen=True, kw_only=True, tag="session.updated"):
    """The session as it stands after an accepted update."""

    session: RealtimeSessionObject


class InputTokenDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Split of the prompt tokens."""

    text_tokens: int = 0
    audio_tokens: int = 0
    cached_tokens: int = 0


class OutputTokenDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Split of the generated tokens."""

    text_tokens: int = 0
    audio_tokens: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one response, as the model stages counted them."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    input_token_details: InputTokenDetails = InputTokenDetails()
    output_token_details: OutputTokenDetails = OutputTokenDetails()

    @classmethod
    def of_text(cls, input_tokens: int, output_tokens: int) -> Usage:
        """Count what a model read and wrote when all of it was text."""
        return cls(
            total_tokens=input_tokens + output_tokens,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            input_token_details=InputTokenDetails(text_tokens=input_tokens),
            output_token_details=OutputTokenDetails(text_tokens=output_tokens),
        )


class StatusError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a response failed."""

    type: str
    code: str


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Why a response ended as it did."""

    type: str
    reason: str | UnsetType = UNSET
    error: StatusError | UnsetType = UNSET


ResponseStatus = Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]


class RealtimeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response object; `metadata` is what `response.create` asked to have back."""

    id: str
    object: Literal["realtime.response"] = "realtime.response"
    status: ResponseStatus
    status_details: StatusDetails | None = None
    output: tuple[Item, ...] = ()
    output_modalities: tuple[str, ...] | UnsetType = UNSET
    conversation_id: str | None | UnsetType = UNSET
    metadata: dict[str, Any] | None = None
    usage: Usage | None = None


class ResponseCreated(RealtimeEvent, frozen=True, kw_only=True, tag="response.created"):
    """A response began; first of all its events."""

    response: RealtimeResponse


class ResponseDone(RealtimeEvent, frozen=True, kw_only=True, tag="response.done"):
    """A response ended; exactly one for each `response.created`."""

    response: RealtimeResponse


class ResponseItemEvent(RealtimeEvent, frozen=True, kw_only=True):
    """Fields shared by the events of a response's item."""

    response_id: str
    item_id: str
    output_index: int = 0


class ResponsePartEvent(ResponseItemEvent, frozen=True, kw_only=True):
    """Fields shared by the events of one content part."""

    content_index: int = 0


class OutputItemAdded(RealtimeEvent, frozen=True, kw_only=True, tag="response.output_item.added"):
    """The response has a new item."""

    response_id: str
    output_index: int = 0
    item: Item


class OutputItemDone(RealtimeEvent, frozen=True, kw_only=True, tag="response.output_item.done"):
    """An item of the response is final."""

    response_id: str
    output_index: int = 0
    item: Item


class ContentPartAdded(
    ResponsePartEvent, frozen=True, kw_only=True, tag="response.content_part.added"
):
    """An item has a new part, of type "audio" or "text"."""

    part: ContentPart


class ContentPartDone(
    ResponsePartEvent, frozen=True, kw_only=True, tag="response.content_part.done"
):
    """A part is final."""

    part: ContentPart


class AudioDelta(ResponsePartEvent, frozen=True, kw_only=True, tag="response.output_audio.delta"):
    """Audio of the answer, in the session's output format."""

    delta: bytes

    @property
    def audio(self) -> bytes:
        """The audio, out of base64: samples, or a whole WAV."""
        return self.delta


class AudioDone(ResponsePartEvent, frozen=True, kw_only=True, tag="response.output_audio.done"):
    """No more audio in this part."""


class TranscriptDelta(
    ResponsePartEvent, frozen=True, kw_only=True, tag="response.output_audio_transcript.delta"
):
    """Words of the audio; exactly one after each audio delta, possibly empty."""

    delta: str

    @property
    def text(self) -> str:
        """The words."""
        return self.delta


class TranscriptDone(
    ResponsePartEvent, frozen=True, kw_only=True, tag="response.output_audio_transcript.done"
):
    """The whole transcript of the part."""

    transcript: str

    @property
    def text(self) -> str:
        """The words."""
        return self.transcript


class TextDelta(ResponsePartEvent, frozen=True, kw_only=True, tag="response.output_text.delta"):
    """Text of the answer, text modality."""

    delta: str

    @property
    def text(self) -> str:
        """The words."""
        return self.delta


class TextDone(ResponsePartEvent, frozen=True, kw_only=True, tag="response.output_text.done"):
    """The whole text of the part."""

    text: str


class FunctionCallDelta(
    ResponseItemEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"
):
    """Arguments of a function call, as they are written."""

    call_id: str
    delta: str


class FunctionCallDone(
    ResponseItemEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.done"
):
    """The whole arguments of a function call, a JSON text."""

    call_id: str
    name: str
    arguments: str


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """One limit: how much of it is left, and when it is whole again if that is known."""

    name: str
    limit: int
    remaining: int
    reset_seconds: float | UnsetType = UNSET


class RateLimitsUpdated(RealtimeEvent, frozen=True, kw_only=True, tag="rate_limits.updated"):
    """Follows every `response.done`."""

    rate_limits: tuple[RateLimit, ...] = ()


class ErrorDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong; `event_id` names the client event that caused it."""

    type: str
    code: str
    message: str
    param: str | None = None
    event_id: str | None = None


class ErrorEvent(RealtimeEvent, frozen=True, kw_only=True, tag="error"):
    """A client event was refused, or the server failed; the session goes on unless it says so."""

    error: ErrorDetails
