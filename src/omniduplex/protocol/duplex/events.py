"""The contract's 42 server events and one more: Tier 1, Tier 2 with its fields, Tier 3 our own."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.duplex.config import Modality, OverlapPolicy
from omniduplex.protocol.duplex.session_view import (
    DuplexSessionObject,
    PlaybackCursor,
    TurnState,
)
from omniduplex.protocol.realtime import events as realtime
from omniduplex.protocol.realtime.events import (
    AudioDone,
    ContentPartAdded,
    ContentPartDone,
    FunctionCallDelta,
    FunctionCallDone,
    InputCleared,
    ItemAdded,
    ItemCreated,
    ItemDone,
    ItemRetrieved,
    OutputCleared,
    OutputItemAdded,
    OutputItemDone,
    RateLimitsUpdated,
    RealtimeEvent,
    ResponsePartEvent,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
    TranscriptionCompleted,
)
from omniduplex.protocol.realtime.items import AudioTextMark


class SessionCreated(realtime.SessionCreated, frozen=True, kw_only=True):
    """The session is open; token and generation are there when the model can be resumed."""

    session: DuplexSessionObject
    attachment_generation: int | UnsetType = UNSET
    resume_token: str | UnsetType = UNSET


class SessionUpdated(realtime.SessionUpdated, frozen=True, kw_only=True):
    """The session as it stands after an accepted update."""

    session: DuplexSessionObject


class HeartbeatAck(RealtimeEvent, frozen=True, kw_only=True, tag="session.heartbeat_ack"):
    """The server is alive and so is the session."""

    session_id: str


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The internal event behind a closure."""

    type: str = ""
    reason: str = ""


class SessionClosed(RealtimeEvent, frozen=True, kw_only=True, tag="session.closed"):
    """The session is over; always its last event."""

    session_id: str
    epoch: int
    reason: str
    event: Reason = Reason()


class SessionResumed(RealtimeEvent, frozen=True, kw_only=True, tag="session.resumed"):
    """This connection now carries the session; replayed events follow."""

    session_id: str
    session: DuplexSessionObject
    attachment_generation: int
    resume_token: str


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


class AudioUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A place of audio in a prompt message."""

    url: str = "native-duplex:input-audio"


class AudioUrlPart(msgspec.Struct, frozen=True, kw_only=True):
    """The audio of a committed turn, as a prompt part."""

    type: Literal["audio_url"] = "audio_url"
    audio_url: AudioUrl = AudioUrl()
    transcript: str | UnsetType = UNSET


class CommittedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt message that a commit made."""

    role: Literal["user"] = "user"
    content: tuple[AudioUrlPart, ...] = (AudioUrlPart(),)


class CommitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit did to the session."""

    type: Literal["input.committed"] = "input.committed"
    session_id: str
    turn_id: int
    epoch: int
    history_len: int
    message: CommittedMessage | UnsetType = UNSET
    realtime_item_id: str | UnsetType = UNSET
    empty: bool | UnsetType = UNSET
    is_speech: bool | UnsetType = UNSET
    no_response: bool | UnsetType = UNSET
    overlap_deferred: bool | UnsetType = UNSET
    overlap_ack: bool | UnsetType = UNSET
    response_create_deferred: bool | UnsetType = UNSET


class InputCommitted(realtime.InputCommitted, frozen=True, kw_only=True):
    """The buffered audio became a user item, and what that did to the session."""

    event: CommitFacts | UnsetType = UNSET


class ItemFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of an item did."""

    type: str
    item_id: str
    truncated: bool | UnsetType = UNSET


class ItemDeleted(realtime.ItemDeleted, frozen=True, kw_only=True):
    """An item left the conversation."""

    event: ItemFacts | UnsetType = UNSET


class ItemTruncated(realtime.ItemTruncated, frozen=True, kw_only=True):
    """An assistant item now ends at `audio_end_ms`."""

    event: ItemFacts | UnsetType = UNSET


class RuntimeMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What the deployment measured: by stage id, then by name (seconds, counts, or monotonic s)."""

    stage_metrics: dict[str, dict[str, float]]


class ResponseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The session's own view of a response; the duplex dialect renders it under `metadata`."""

    type: str
    session_id: str
    response_id: str | UnsetType = UNSET
    epoch: int
    turn_id: int | UnsetType = UNSET
    committed: bool | UnsetType = UNSET
    playback: PlaybackCursor | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    model_listen: bool | UnsetType = UNSET
    omniduplex: RuntimeMetadata | UnsetType = UNSET


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


class SpeakMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Which epoch a speak decision belongs to."""

    session_id: str
    epoch: int
    model_speak: bool = True


class SpeakDecision(ResponsePartEvent, frozen=True, kw_only=True, tag="response.speak"):
    """The model decided to speak; at most one for a response, before its first audio."""

    metadata: SpeakMetadata


class DeltaMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Where an audio delta stands: cumulative ms of the response, and its text marks."""

    session_id: str
    epoch: int
    model_speak: bool = True
    end_of_turn: bool = False
    audio_duration_ms: int
    audio_text_marks: tuple[AudioTextMark, ...] = ()
    playback: PlaybackCursor


class AudioDelta(realtime.AudioDelta, frozen=True, kw_only=True):
    """Audio of the answer, with its format, its rate in Hz and its place in the response."""

    format: str | UnsetType = UNSET
    sample_rate_hz: int | UnsetType = UNSET
    metadata: DeltaMetadata | UnsetType = UNSET


class ListenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response-shaped body of a listen decision."""

    object: Literal["realtime.response"] = "realtime.response"
    status: Literal["listening"] = "listening"
    id: str | UnsetType = UNSET
    metadata: ResponseFacts


class ListenDecision(RealtimeEvent, frozen=True, kw_only=True, tag="response.listen"):
    """The model keeps listening; names a response only when it ends that one."""

    session_id: str
    epoch: int
    response_id: str | UnsetType = UNSET
    response: ListenResponse


class FunctionCallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model gave it, whole or not."""

    type: Literal["function_call.done"] = "function_call.done"
    session_id: str
    epoch: int
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class MalformedFunctionCall(
    RealtimeEvent, frozen=True, kw_only=True, tag="duplex.function_call.done"
):
    """The model called a tool without naming it or the call."""

    event: FunctionCallFacts


class PlaybackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an acknowledgement did to the ledger and to history."""

    type: Literal["playback.acknowledged"] = "playback.acknowledged"
    session_id: str
    epoch: int
    item_id: str
    played_ms: int
    committed_ms: int
    truncate: bool = False
    playback: PlaybackCursor
    history_committed: bool


class PlaybackAcknowledged(RealtimeEvent, frozen=True, kw_only=True, tag="playback.acknowledged"):
    """An acknowledgement was taken."""

    event: PlaybackFacts


class OverlapMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """How an overlap was judged; times in ms."""

    duration_ms: float | UnsetType = UNSET
    overlap_ms: float | UnsetType = UNSET
    overlap_speech_ms: float | UnsetType = UNSET
    buffer_audio: bool | UnsetType = UNSET
    defer_runtime_append: bool | UnsetType = UNSET
    force_listen: bool | UnsetType = UNSET
    cancel_reason: str | UnsetType = UNSET


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
    | SpeechStarted
    | SpeechStopped
    | InputCommitted
    | InputCleared
    | ItemAdded
    | ItemCreated
    | ItemDone
    | TranscriptionCompleted
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
    | OutputCleared
    | PlaybackAcknowledged
    | OverlapDecision
    | TurnEvent
    | ErrorEvent
)
