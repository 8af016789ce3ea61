"""The beta dialect: the OpenAI dialect by the names and in the flat shapes of the API's beta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, structs

from omniduplex.protocol.duplex.config import DEFAULT_VOICE
from omniduplex.protocol.duplex.events import (
    AudioDelta,
    DuplexEvent,
    ResponseCreated,
    ResponseDone,
    SessionCreated,
    SessionUpdated,
)
from omniduplex.protocol.duplex.openai_dialect import (
    as_twin,
    ga_item,
    ga_response,
    ga_turn_detection,
    project_openai,
)
from omniduplex.protocol.duplex.session_view import DuplexSessionObject
from omniduplex.protocol.realtime import beta_events as beta
from omniduplex.protocol.realtime.beta_events import BetaResponse, BetaSessionObject
from omniduplex.protocol.realtime.buffer_events import TimeoutTriggered
from omniduplex.protocol.realtime.conversation_events import (
    ConversationCreated,
    ItemAdded,
    ItemCreated,
    ItemDone,
    ItemRetrieved,
)
from omniduplex.protocol.realtime.events import (
    AudioDone,
    OutputItemAdded,
    OutputItemDone,
    RealtimeEvent,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
)
from omniduplex.protocol.realtime.items import Item

# What the API says since its beta.
NOT_BETA: frozenset[type[RealtimeEvent]] = frozenset({ItemAdded, ItemDone, TimeoutTriggered})
_PART_TYPES = {"output_audio": "audio", "output_text": "text"}


def project_beta(event: DuplexEvent) -> RealtimeEvent | None:
    """Render an event for a client of the beta; None when the beta has no such event."""
    if type(event) in NOT_BETA:
        return None
    projection = BETA_PROJECTIONS.get(type(event))
    return project_openai(event) if projection is None else projection(event)


def _beta_item(item: Item) -> Item:
    shown = ga_item(item)
    if shown.content is UNSET:
        return shown
    parts = tuple(
        structs.replace(part, type=_PART_TYPES.get(part.type, part.type)) for part in shown.content
    )
    return structs.replace(shown, content=parts)


def _with_beta_item(event: Any) -> RealtimeEvent:
    projected: RealtimeEvent = structs.replace(event, item=_beta_item(event.item))
    return projected


def _beta_session(session: DuplexSessionObject) -> BetaSessionObject:
    return BetaSessionObject(
        id=session.id,
        model=session.model,
        modalities=session.modalities,
        instructions=session.instructions or "",
        voice=session.voice or DEFAULT_VOICE,
        input_audio_format=session.input_audio_format,
        output_audio_format=session.output_audio_format,
        input_audio_transcription=session.input_audio_transcription,
        input_audio_noise_reduction=session.input_audio_noise_reduction,
        turn_detection=ga_turn_detection(session.turn_detection),
        tools=session.tools,
        tool_choice=session.tool_choice,
        temperature=session.temperature,
        max_response_output_tokens=session.max_output_tokens,
        speed=session.audio.output.speed,
        tracing=session.tracing,
        expires_at=session.expires_at,
    )


def _created(event: SessionCreated) -> beta.SessionCreated:
    return beta.SessionCreated(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        session=_beta_session(event.session),
    )


def _updated(event: SessionUpdated) -> beta.SessionUpdated:
    return beta.SessionUpdated(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        session=_beta_session(event.session),
    )


def _beta_response(event: ResponseCreated | ResponseDone) -> BetaResponse:
    shown = ga_response(event.response)
    return BetaResponse(
        id=shown.id,
        status=shown.status,
        status_details=shown.status_details,
        output=tuple(_beta_item(item) for item in shown.output),
        modalities=shown.output_modalities,
        conversation_id=shown.conversation_id,
        metadata=shown.metadata,
        usage=shown.usage,
    )


def _response_created(event: ResponseCreated) -> beta.ResponseCreated:
    return beta.ResponseCreated(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        response=_beta_response(event),
    )


def _response_done(event: ResponseDone) -> beta.ResponseDone:
    return beta.ResponseDone(
        event_id=event.event_id,
        server_event_seq=event.server_event_seq,
        response=_beta_response(event),
    )


def _as_it_is(event: RealtimeEvent) -> RealtimeEvent:
    return event


BETA_PROJECTIONS: dict[type[Any], Callable[[Any], RealtimeEvent]] = {
    SessionCreated: _created,
    SessionUpdated: _updated,
    ConversationCreated: _as_it_is,
    ItemCreated: _with_beta_item,
    ItemRetrieved: _with_beta_item,
    OutputItemAdded: _with_beta_item,
    OutputItemDone: _with_beta_item,
    ResponseCreated: _response_created,
    ResponseDone: _response_done,
    AudioDelta: as_twin(beta.AudioDelta),
    AudioDone: as_twin(beta.AudioDone),
    TranscriptDelta: as_twin(beta.TranscriptDelta),
    TranscriptDone: as_twin(beta.TranscriptDone),
    TextDelta: as_twin(beta.TextDelta),
    TextDone: as_twin(beta.TextDone),
}
