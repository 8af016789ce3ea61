"""Events as a client of either dialect reads them, and the official models that judge them."""

from __future__ import annotations

import json
from typing import Any

from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from omniduplex.protocol.duplex import (
    Dialect,
    DuplexEvent,
    HeartbeatAck,
    ListenDecision,
    MalformedFunctionCall,
    OverlapDecision,
    PlaybackAcknowledged,
    ResyncRequired,
    SessionClosed,
    SessionExpired,
    SessionExpiring,
    SessionReplaced,
    SessionResumed,
    SpeakDecision,
    TurnEvent,
    encode_event,
    project,
)

OFFICIAL: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)

TIER_3 = (
    HeartbeatAck,
    SessionClosed,
    SessionResumed,
    SessionReplaced,
    SessionExpired,
    ResyncRequired,
    SessionExpiring,
    SpeakDecision,
    ListenDecision,
    MalformedFunctionCall,
    PlaybackAcknowledged,
    OverlapDecision,
    TurnEvent,
)


def named(event: DuplexEvent) -> str:
    return type(event).__name__


def rendered(event: DuplexEvent, dialect: Dialect) -> dict[str, Any]:
    projected = project(event, dialect)
    assert projected is not None
    message: dict[str, Any] = json.loads(encode_event(projected, event_id="event_1", seq=1))
    return message
