"""The contract's 42 server events and 7 more: tier 1, tier 2 with its fields, tier 3 our own."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.duplex.config import Modality, OverlapPolicy
from omniduplex.protocol.duplex.event_facts import (
    CommitFacts,
    DeltaMetadata,
    FunctionCallFacts,
    ItemFacts,
    OverlapMetadata,
    PlaybackFacts,
    Reason,
    ResponseFacts,
    SpeakMetadata,
)
from omniduplex.protocol.duplex.session_view import (
    DuplexSessionObject,
    TurnState,
)
from omniduplex.protocol.realtime import buffer_events, conversation_events
from omniduplex.protocol.realtime import events as realtime
from omniduplex.protocol.realtime.buffer_events import (
    InputCleared,
    OutputCleared,
    OutputStarted,
    OutputStopped,
    SpeechStarted,
    SpeechStopped,
    TimeoutTriggered,
)
from omniduplex.protocol.realtime.conversation_events import (
    ConversationCreated,
    ItemAdded,
    ItemCreated,
    ItemDone,
    ItemRetrieved,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)
from omniduplex.protocol.realtime.events import (
    AudioDone,
    ContentPartAdded,
    ContentPartDone,
    FunctionCallDelta,
    FunctionCallDone,
    OutputItemAdded,
    OutputItemDone,
    RateLimitsUpdated,
    RealtimeEvent,
    ResponsePartEvent,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
)


class SessionCreated(realtime.SessionCreated, frozen=True, kw_only=True):
    """The session is open; token, generation and grace are there when it can be resumed.

    `disconnect_grace_s` is for how many s it then waits for its client.
    """

    session: DuplexSessionObject
    attachment_generation: int | UnsetType = UNSET
    resume_token: str | UnsetType = UNSET
    disconnect_grace_s: float | UnsetType = UNSET


class SessionUpdated(realtime.SessionUpdated, frozen=True, kw_only=True):
    """The session as it stands after an accepted update.

    What `session.created` tells of resuming is there in the update that takes up the duplex
    dialect.
    """

    session: DuplexSessionObject
    attachment_generation: int | UnsetType = UNSET
    resume_token: str | UnsetType = UNSET
    disconnect_grace_s: float | UnsetType = UNSET


class HeartbeatAck(RealtimeEvent, frozen=True, kw_only=True, tag="session.heartbeat_ack"):
    """The server is alive and so is the session."""

    session_id: str


class SessionClosed(RealtimeEvent, frozen=True, kw_only=True, tag="session.closed"):
    """The session is over; always its last event.

    `slot_released` says whether another session can be opened in its place by now.
    """

    session_id: str
    epoch: int
    reason: str
    event: Reason = Reason()
    slot_released: bool = True


class SessionResumed(RealtimeEvent, frozen=True, kw_only=True, tag="session.resumed"):
    """This connection now carries the session; replayed events follow."""

    session_id: str
    session: DuplexSessionObject
    attachment_generation: int
    resume_token: str
    disconnect_grace_s: float | UnsetType = UNSET


class SessionReplaced(RealtimeEvent, frozen=True, kw_only=True, tag="session.replaced"):
    """Another connection took the session; this one is closed."""

    session_id: str
    attachment_generation: int


class SessionExpired(RealtimeEvent, frozen=True, kw_only=True, tag="session.expired"):
    """The session ended by itself; always its last event."""

    session_id: str
    reason: str


class SessionExpiring(RealtimeEvent, frozen=True, kw_only=True, tag="session.expiring"):
    """The session will end by itself, or the server stops (`shutdown`), in `time_left_ms`."""

    session_id: str
    reason: str
    time_left_ms: int


class ResyncRequired(RealtimeEvent, frozen=True, kw_only=True, tag="session.resync_required"):
    """A complete replay is not possible."""

    session_id: str
    reason: str


class InputCommitted(buffer_events.InputCommitted, frozen=True, kw_only=True):
    """The buffered audio became a user item, and what that did to the session."""

    event: CommitFacts | UnsetType = UNSET


class ItemDeleted(conversation_events.ItemDeleted, frozen=True, kw_only=True):
    """An item left the conversation."""

    event: ItemFacts | UnsetType = UNSET


class ItemTruncated(conversation_events.ItemTruncated, frozen=True, kw_only=True):
    """An assistant item now ends at `audio_end_ms`."""

    event: ItemFacts | UnsetType = UNSET


class DuplexResponse(realtime.RealtimeResponse, frozen=True, kw_only=True):
    """A response as the session emits it: `facts` never leaves the codec under that name."""

    modalities: tuple[Modality, ...] | UnsetType = UNSET
    facts: ResponseFacts | UnsetType = UNSET


class ResponseCreated(realtime.ResponseCreated, frozen=True, kw_only=True):
    """A response began; first of all its events."""

    response_id: str
    response: DuplexResponse


class ResponseDone(realtime.ResponseDone, frozen=True, kw_only=True):
    """A response ended; exactly one for each `response.created`."""

    response_id: str
    response: DuplexResponse


class SpeakDecision(ResponsePartEvent, frozen=True, kw_only=True, tag="response.speak"):
    """The model decided to speak; at most one for a response, before its first audio."""

    metadata: SpeakMetadata


class AudioDelta(realtime.AudioDelta, frozen=True, kw_only=True):
    """Audio of the answer, with its format, its rate in Hz and its place in the response.

    In `wav` it is a whole file.
    """

    format: str | UnsetType = UNSET
    sample_rate_hz: int | UnsetType = UNSET
    metadata: DeltaMetadata | UnsetType = UNSET


class ListenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response-shaped body of a listen decision."""

    object: Literal["realtime.response"] = "realtime.response"
    status: Literal["listening"] = "listening"
    id: str | UnsetType = UNSET
    metadata: ResponseFacts


class ListenDecision(
    RealtimeEvent, frozen=True, kw_only=True, tag="response.listen", omit_defaults=True
):
    """The model keeps listening; names a response only when it ends that one.

    Silence while nothing goes on, where the client ends turns, is told once, not for each append.
    """

    session_id: str
    epoch: int
    response_id: str | None = None
    response: ListenResponse


class MalformedFunctionCall(
    RealtimeEvent, frozen=True, kw_only=True, tag="duplex.function_call.done"
):
    """The model called a tool without naming it or the call."""

    event: FunctionCallFacts


class PlaybackAcknowledged(RealtimeEvent, frozen=True, kw_only=True, tag="playback.acknowledged"):
    """An acknowledgement was taken."""

    event: PlaybackFacts


class OverlapDecision(RealtimeEvent, frozen=True, kw_only=True, tag="overlap.decision"):
    """What the session does about speech during an answer."""

    session_id: str
    epoch: int
    policy: OverlapPolicy
    action: Literal["listen", "barge_in", "drop"]
    reason: str
    metadata: OverlapMetadata | UnsetType = UNSET


class TurnEvent(RealtimeEvent, frozen=True, kw_only=True, tag="turn.event"):
    """A turn signal was taken."""

    session_id: str
    event: str
    turn_state: TurnState
    epoch: int


class ErrorDetails(realtime.ErrorDetails, frozen=True, kw_only=True):
    """What went wrong, and whether trying again can help."""

    retryable: bool | UnsetType = UNSET


class ErrorEvent(realtime.ErrorEvent, frozen=True, kw_only=True):
    """A client event was refused, or the server failed; the session goes on unless it says so."""

    error: ErrorDetails

    @property
    def code(self) -> str:
        """The error code."""
        return self.error.code

    @property
    def message(self) -> str:
        """What was wrong, for people."""
        return self.error.message

    @property
    def related_event_id(self) -> str | None:
        """The client event that was refused, where it had an id."""
        return self.error.event_id


DuplexEvent = (
    SessionCreated
    | SessionUpdated
    | HeartbeatAck
    | SessionClosed
    | SessionResumed
    | SessionReplaced
    | SessionExpired
    | SessionExpiring
    | ResyncRequired
    | ConversationCreated
    | SpeechStarted
    | SpeechStopped
    | InputCommitted
    | InputCleared
    | TimeoutTriggered
    | ItemAdded
    | ItemCreated
    | ItemDone
    | TranscriptionDelta
    | TranscriptionCompleted
    | TranscriptionFailed
    | ItemDeleted
    | ItemRetrieved
    | ItemTruncated
    | ResponseCreated
    | OutputItemAdded
    | ContentPartAdded
    | SpeakDecision
    | AudioDelta
    | TranscriptDelta
    | TextDelta
    | TextDone
    | AudioDone
    | TranscriptDone
    | ContentPartDone
    | OutputItemDone
    | ResponseDone
    | RateLimitsUpdated
    | ListenDecision
    | FunctionCallDelta
    | FunctionCallDone
    | MalformedFunctionCall
    | OutputStarted
    | OutputStopped
    | OutputCleared
    | PlaybackAcknowledged
    | OverlapDecision
    | TurnEvent
    | ErrorEvent
)
