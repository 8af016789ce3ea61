"""One telling instance of every server event, as a session would emit it."""

from __future__ import annotations

from typing import Any

from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioDone,
    AudioTextMark,
    CommitFacts,
    CommittedMessage,
    ContentPart,
    ContentPartAdded,
    ContentPartDone,
    ConversationCreated,
    ConversationObject,
    DeltaMetadata,
    Dialect,
    DuplexCapabilities,
    DuplexError,
    DuplexEvent,
    DuplexResponse,
    DuplexSessionObject,
    DurationUsage,
    FunctionCallDelta,
    FunctionCallDone,
    FunctionCallFacts,
    HeartbeatAck,
    InputCleared,
    InputCommitted,
    Item,
    ItemAdded,
    ItemCreated,
    ItemDeleted,
    ItemDone,
    ItemFacts,
    ItemRetrieved,
    ItemTruncated,
    ListenDecision,
    ListenResponse,
    MalformedFunctionCall,
    OutputCleared,
    OutputItemAdded,
    OutputItemDone,
    OutputStarted,
    OutputStopped,
    OverlapDecision,
    OverlapMetadata,
    PlaybackAcknowledged,
    PlaybackCursor,
    PlaybackFacts,
    RateLimit,
    RateLimitsUpdated,
    Reason,
    ResponseCreated,
    ResponseDone,
    ResponseFacts,
    ResyncRequired,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionExpiring,
    SessionReplaced,
    SessionResumed,
    SessionUpdated,
    SpeakDecision,
    SpeakMetadata,
    SpeechStarted,
    SpeechStopped,
    StatusDetails,
    TextDelta,
    TextDone,
    TimeoutTriggered,
    TranscriptDelta,
    TranscriptDone,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionError,
    TranscriptionFailed,
    TurnEvent,
    Usage,
    default_config,
    error_event,
    session_object,
)

SESSION_ID = "duplex-1"
PCM = bytes(range(48))
HEARD = PlaybackCursor(generated_ms=2400, sent_ms=2400, played_ms=1000, committed_ms=1000)
PART: dict[str, Any] = {"response_id": "resp_1", "item_id": "item_resp_1"}


def session(dialect: Dialect) -> DuplexSessionObject:
    """Return a fresh session of a dialect's defaults."""
    return session_object(
        # The models of the beta know these names alone.
        default_config("gpt-4o-realtime-preview", dialect),
        session_id=SESSION_ID,
        capabilities=DuplexCapabilities(),
        state="open",
        turn_state="idle",
        epoch=0,
        turn_id=0,
        active_response_id=None,
        active_response_turn_id=None,
        active_request_id=None,
        playback=PlaybackCursor(),
    )


USER_ITEM = Item(
    id="item_1",
    role="user",
    content=(ContentPart(type="input_audio", transcript="what is the weather"),),
)
CUT_ITEM = Item(
    id="item_resp_1",
    role="assistant",
    status="cancelled",
    content=(
        ContentPart(
            type="output_audio",
            transcript="It is sunny",
            audio_duration_ms=1000,
            audio_text_marks=(AudioTextMark(text_chars=11, audio_end_ms=1000),),
        ),
    ),
)
CALL_ITEM = Item(
    id="item_call",
    type="function_call",
    name="get_weather",
    call_id="call_1",
    arguments='{"city":"Hong Kong"}',
)

CREATED = ResponseCreated(
    response_id="resp_1",
    response=DuplexResponse(
        id="resp_1",
        status="in_progress",
        output_modalities=("audio",),
        metadata={"trace": "turn-3"},
        facts=ResponseFacts(
            type="response.created", session_id=SESSION_ID, response_id="resp_1", epoch=0, turn_id=1
        ),
    ),
)
CANCELLED = ResponseDone(
    response_id="resp_1",
    response=DuplexResponse(
        id="resp_1",
        status="cancelled",
        status_details=StatusDetails(type="cancelled", reason="barge_in"),
        output=(CUT_ITEM,),
        output_modalities=("audio",),
        metadata={"trace": "turn-3"},
        usage=Usage(total_tokens=3, input_tokens=1, output_tokens=2),
        facts=ResponseFacts(
            type="response.done",
            session_id=SESSION_ID,
            response_id="resp_1",
            epoch=0,
            committed=True,
            playback=HEARD,
            reason="barge_in",
        ),
    ),
)


def samples(dialect: Dialect) -> list[DuplexEvent]:
    """Return one event of every type, the session being of `dialect`."""
    shown = session(dialect)
    return [
        SessionCreated(
            session=shown, attachment_generation=1, resume_token="rt_1", disconnect_grace_s=30.0
        ),
        SessionUpdated(session=shown),
        HeartbeatAck(session_id=SESSION_ID),
        SessionClosed(
            session_id=SESSION_ID,
            epoch=3,
            reason="client_close",
            event=Reason(type="session.closed", reason="client_close"),
        ),
        SessionResumed(
            session_id=SESSION_ID,
            session=shown,
            attachment_generation=2,
            resume_token="rt_2",
            disconnect_grace_s=30.0,
        ),
        SessionReplaced(session_id=SESSION_ID, attachment_generation=1),
        SessionExpired(session_id=SESSION_ID, reason="idle_ttl_expired"),
        SessionExpiring(session_id=SESSION_ID, reason="idle_ttl_expired", time_left_ms=9000),
        ResyncRequired(session_id=SESSION_ID, reason="journal_gap"),
        ConversationCreated(conversation=ConversationObject(id="conv_1")),
        SpeechStarted(audio_start_ms=1040, item_id="item_1"),
        SpeechStopped(audio_end_ms=2860, item_id="item_1"),
        InputCommitted(
            item_id="item_1",
            event=CommitFacts(
                session_id=SESSION_ID,
                turn_id=1,
                epoch=0,
                history_len=1,
                message=CommittedMessage(),
                realtime_item_id="item_1",
            ),
        ),
        InputCleared(),
        TimeoutTriggered(audio_start_ms=9000, audio_end_ms=14000, item_id="item_2"),
        ItemAdded(item=USER_ITEM),
        ItemCreated(item=USER_ITEM),
        ItemDone(item=CALL_ITEM, previous_item_id="item_1"),
        TranscriptionDelta(item_id="item_1", delta="what is the weather"),
        TranscriptionCompleted(
            item_id="item_1", transcript="what is the weather", usage=DurationUsage(seconds=1.5)
        ),
        TranscriptionFailed(
            item_id="item_1",
            error=TranscriptionError(
                type="server_error", code="transcription_failed", message="The recogniser broke."
            ),
        ),
        ItemDeleted(
            item_id="item_1", event=ItemFacts(type="conversation.item.deleted", item_id="item_1")
        ),
        ItemRetrieved(item=CUT_ITEM),
        ItemTruncated(
            item_id="item_resp_1",
            audio_end_ms=1850,
            event=ItemFacts(
                type="conversation.item.truncated", item_id="item_resp_1", truncated=True
            ),
        ),
        CREATED,
        OutputItemAdded(response_id="resp_1", item=CALL_ITEM),
        ContentPartAdded(part=ContentPart(type="audio", transcript=""), **PART),
        SpeakDecision(metadata=SpeakMetadata(session_id=SESSION_ID, epoch=0), **PART),
        AudioDelta(
            delta=PCM,
            format="pcm16",
            sample_rate_hz=24000,
            metadata=DeltaMetadata(
                session_id=SESSION_ID,
                epoch=0,
                audio_duration_ms=1000,
                audio_text_marks=(AudioTextMark(text_chars=11, audio_end_ms=1000),),
                playback=HEARD,
            ),
            **PART,
        ),
        TranscriptDelta(delta="It is sunny", **PART),
        TextDelta(delta="Tomorrow looks", **PART),
        TextDone(text="Tomorrow looks cloudy.", **PART),
        AudioDone(**PART),
        TranscriptDone(transcript="It is sunny", **PART),
        ContentPartDone(
            part=ContentPart(type="audio", transcript="It is sunny", audio_duration_ms=1000), **PART
        ),
        OutputItemDone(response_id="resp_1", item=CUT_ITEM),
        CANCELLED,
        RateLimitsUpdated(
            rate_limits=(RateLimit(name="requests", limit=4, remaining=3),),
        ),
        ListenDecision(
            session_id=SESSION_ID,
            epoch=0,
            response=ListenResponse(
                metadata=ResponseFacts(
                    type="response.listen", session_id=SESSION_ID, epoch=0, reason="model_listen"
                )
            ),
        ),
        FunctionCallDelta(delta="{}", call_id="call_1", **PART),
        FunctionCallDone(arguments="{}", name="get_weather", call_id="call_1", **PART),
        MalformedFunctionCall(event=FunctionCallFacts(session_id=SESSION_ID, epoch=0)),
        OutputStarted(response_id="resp_1"),
        OutputStopped(response_id="resp_1"),
        OutputCleared(response_id="resp_1"),
        PlaybackAcknowledged(
            event=PlaybackFacts(
                session_id=SESSION_ID,
                epoch=0,
                item_id="item_resp_1",
                played_ms=1000,
                committed_ms=1000,
                playback=HEARD,
                history_committed=False,
            )
        ),
        OverlapDecision(
            session_id=SESSION_ID,
            epoch=0,
            policy="listen_only",
            action="listen",
            reason="policy_listen_only",
            metadata=OverlapMetadata(overlap_ms=1400, buffer_audio=True),
        ),
        TurnEvent(session_id=SESSION_ID, event="user_started", turn_state="user_speaking", epoch=0),
        error_event(
            DuplexError(
                "unsupported_turn_detection",
                "No such turn detection.",
                param="session.turn_detection",
                event_id="evt_1",
            )
        ),
    ]
