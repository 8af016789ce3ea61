"""The OpenAI dialect: official events only, as a strict stock client must have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import UNSET, structs

from omniduplex.protocol.duplex.config import DEFAULT_VOICE
from omniduplex.protocol.duplex.errors import OPENAI_CODES, failure_kind
from omniduplex.protocol.duplex.events import (
    AudioDelta,
    DuplexEvent,
    DuplexResponse,
    ErrorEvent,
    HeartbeatAck,
    InputCommitted,
    ItemDeleted,
    ItemTruncated,
    ListenDecision,
    MalformedFunctionCall,
    OverlapDecision,
    PlaybackAcknowledged,
    ResponseCreated,
    ResponseDone,
    ResyncRequired,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionExpiring,
    SessionReplaced,
    SessionResumed,
    SessionUpdated,
    SpeakDecision,
    TurnEvent,
)
from omniduplex.protocol.duplex.session_view import DuplexSessionObject
from omniduplex.protocol.realtime import buffer_events, conversation_events
from omniduplex.protocol.realtime import events as realtime
from omniduplex.protocol.realtime.buffer_events import OutputCleared
from omniduplex.protocol.realtime.conversation_events import (
    ConversationCreated,
    ItemAdded,
    ItemCreated,
    ItemDone,
    ItemRetrieved,
)
from omniduplex.protocol.realtime.events import (
    ContentPartAdded,
    ContentPartDone,
    OutputItemAdded,
    OutputItemDone,
    RealtimeEvent,
    RealtimeResponse,
    StatusDetails,
    StatusError,
)
from omniduplex.protocol.realtime.items import ContentPart, Item
from omniduplex.protocol.realtime.session import (
    AudioObject,
    InputAudioObject,
    OutputAudioObject,
    RealtimeSessionObject,
)

AnyEvent = TypeVar("AnyEvent", bound=RealtimeEvent)

_CANCEL_REASONS = {
    "barge_in": "turn_detected",
    "output_audio_buffer_clear": "client_cancelled",
    "turn_detected": "turn_detected",
    "client_cancelled": "client_cancelled",
}
_INCOMPLETE_REASONS = ("max_output_tokens", "content_filter")

# Ours alone, or the beta twin of an event that is sent anyway: a GA client would choke on them.
NOT_OPENAI: frozenset[type[RealtimeEvent]] = frozenset(
    {
        HeartbeatAck,
        SessionClosed,
        SessionResumed,
        SessionReplaced,
        SessionExpired,
        SessionExpiring,
        ResyncRequired,
        SpeakDecision,
        ListenDecision,
        MalformedFunctionCall,
        PlaybackAcknowledged,
        OverlapDecision,
        TurnEvent,
        ItemCreated,
        ConversationCreated,
    }
)


def project_openai(event: DuplexEvent) -> RealtimeEvent | None:
    """Render an event for a stock client; None when the API has no such event."""
    if type(event) in NOT_OPENAI:
        return None
    projection = _OPENAI.get(type(event))
    return event if projection is None else projection(event)


def as_twin(kind: type[AnyEvent]) -> Callable[[RealtimeEvent], AnyEvent]:
    """Return a projection onto a Tier 1 twin: its fields, without what we add to them."""

    def narrow(event: RealtimeEvent) -> AnyEvent:
        return kind(**{name: getattr(event, name) for name in kind.__struct_fields__})

    return narrow


def ga_turn_detection(detection: dict[str, Any] | None) -> dict[str, Any] | None:
    """Drop the setting that is ours."""
    if detection is None:
        return None
    return {name: value for name, value in detection.items() if name != "min_speech_duration_ms"}


def _ga_session(session: DuplexSessionObject) -> RealtimeSessionObject:
    incoming, outgoing = session.audio.input, session.audio.output
    return RealtimeSessionObject(
        id=session.id,
        model=session.model,
        output_modalities=session.output_modalities,
        instructions=session.instructions or "",
        audio=AudioObject(
            input=InputAudioObject(
                format=incoming.format,
                turn_detection=ga_turn_detection(incoming.turn_detection),
                transcription=incoming.transcription,
                noise_reduction=incoming.noise_reduction,
            ),
            output=OutputAudioObject(
                format=outgoing.format,
                voice=outgoing.voice or DEFAULT_VOICE,
                speed=outgoing.speed,
            ),
        ),
        tools=session.tools,
        tool_choice=session.tool_choice,
        max_output_tokens=session.max_output_tokens,
        tracing=session.tracing,
        truncation=session.truncation,
        prompt=session.prompt,
        include=session.include,
        reasoning=session.reasoning,
        parallel_tool_calls=session.parallel_tool_calls,
        expires_at=session.expires_at,
    )


def _ga_part(part: ContentPart) -> ContentPart:
    """Drop our keys; the transcript of user audio is there even before it is known."""
    is_unheard = part.type == "input_audio" and part.transcript is UNSET
    return structs.replace(
        part,
        transcript=None if is_unheard else part.transcript,
        is_speech=UNSET,
        audio_duration_ms=UNSET,
        audio_text_marks=UNSET,
    )


def ga_item(item: Item) -> Item:
    """Render an item for a stock client, which knows three statuses."""
    status = "incomplete" if item.status == "cancelled" else item.status
    content = item.content
    if content is not UNSET:
        content = tuple(_ga_part(part) for part in content)
    return structs.replace(item, status=status, content=content)


def _ga_status_details(details: StatusDetails | None) -> StatusDetails | None:
    """Keep to the four reasons of the API; what failed is told as an error."""
    if details is None:
        return None
    reason = "" if details.reason is UNSET else details.reason
    if details.type == "failed":
        return StatusDetails(type="failed", error=_status_error(details, reason))
    if details.type == "cancelled":
        return StatusDetails(type="cancelled", reason=_CANCEL_REASONS.get(reason, UNSET))
    if details.type == "incomplete" and reason in _INCOMPLETE_REASONS:
        return StatusDetails(type="incomplete", reason=reason)
    return StatusDetails(type=details.type)


def _status_error(details: StatusDetails, code: str) -> StatusError:
    if details.error is not UNSET:
        return details.error
    code = code or "internal_error"
    return StatusError(type=failure_kind(code).error_class, code=code)


def ga_response(response: DuplexResponse) -> RealtimeResponse:
    """Render a response for a stock client: what it asked to have back, and nothing of ours."""
    metadata = response.metadata
    if metadata is not None:
        metadata = {key: value for key, value in metadata.items() if isinstance(value, str)}
    modalities = response.output_modalities
    return RealtimeResponse(
        id=response.id,
        status=response.status,
        status_details=_ga_status_details(response.status_details),
        output=tuple(ga_item(item) for item in response.output),
        output_modalities=response.modalities if modalities is UNSET else modalities,
        conversation_id=response.conversation_id,
        metadata=metadata,
        usage=response.usage,
    )


def _ga_error(event: ErrorEvent) -> realtime.ErrorEvent:
    error = event.error
    code, message = OPENAI_CODES.get(error.code, error.code), error.message
    if error.code == "response_not_active" and not message.startswith("Cancellation failed"):
        message = f"Cancellation failed: {message}"
    return realtime.ErrorEvent(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        error=realtime.ErrorDetails(
            type=error.type,
            code=code,
            message=message,
            param=error.param,
            event_id=error.event_id,
        ),
    )


def _ga_created(event: SessionCreated) -> realtime.SessionCreated:
    return realtime.SessionCreated(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        session=_ga_session(event.session),
    )


def _ga_updated(event: SessionUpdated) -> realtime.SessionUpdated:
    return realtime.SessionUpdated(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        session=_ga_session(event.session),
    )


def _ga_response_created(event: ResponseCreated) -> realtime.ResponseCreated:
    return realtime.ResponseCreated(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        response=ga_response(event.response),
    )


def _ga_response_done(event: ResponseDone) -> realtime.ResponseDone:
    return realtime.ResponseDone(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        response=ga_response(event.response),
    )


def _with_ga_item(event: Any) -> RealtimeEvent:
    projected: RealtimeEvent = structs.replace(event, item=ga_item(event.item))
    return projected


def _with_ga_part(event: Any) -> RealtimeEvent:
    projected: RealtimeEvent = structs.replace(event, part=_ga_part(event.part))
    return projected


def _ga_cleared(event: OutputCleared) -> OutputCleared:
    """The API knows no null here: no response has the empty name."""
    return event if event.response_id is not None else structs.replace(event, response_id="")


_OPENAI: dict[type[Any], Callable[[Any], RealtimeEvent]] = {
    SessionCreated: _ga_created,
    SessionUpdated: _ga_updated,
    InputCommitted: as_twin(buffer_events.InputCommitted),
    ItemAdded: _with_ga_item,
    ItemDone: _with_ga_item,
    ItemRetrieved: _with_ga_item,
    ItemDeleted: as_twin(conversation_events.ItemDeleted),
    ItemTruncated: as_twin(conversation_events.ItemTruncated),
    OutputItemAdded: _with_ga_item,
    OutputItemDone: _with_ga_item,
    ContentPartAdded: _with_ga_part,
    ContentPartDone: _with_ga_part,
    ResponseCreated: _ga_response_created,
    ResponseDone: _ga_response_done,
    AudioDelta: as_twin(realtime.AudioDelta),
    OutputCleared: _ga_cleared,
    ErrorEvent: _ga_error,
}
