"""The door of the client library."""

from omniduplex.clients.audio import (
    audio_data_url,
    image_data_url,
    read_pcm16_wav,
    reference_audio_data_url,
    write_pcm16_wav,
)
from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock, MonotonicClock, wait_for_condition
from omniduplex.clients.collector import EventCollector, acknowledge_collected_playback
from omniduplex.clients.config import SessionConfig
from omniduplex.clients.duplex_trace import DuplexTrace
from omniduplex.clients.errors import (
    DuplexClientError,
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
)
from omniduplex.clients.events import ServerEvent, wire_type
from omniduplex.clients.inline_duplex import InlineDuplexClient
from omniduplex.clients.playback import PlaybackTracker, RealTimePlayer, Truncation
from omniduplex.clients.playback_cut import PlaybackCut, bounded_drain, immediate_cut
from omniduplex.clients.reconnect import ConnectionResumed, ReconnectPolicy, ResumeCredentials
from omniduplex.clients.response import ResponseHandle
from omniduplex.clients.subscription import Subscription
from omniduplex.clients.timing import summarize_session_request_metrics
from omniduplex.clients.transport import Transport
from omniduplex.clients.units import (
    chunk_period_ms,
    duplex_unit_boundary_ms,
    has_residual_model_unit,
)
from omniduplex.clients.websocket import DuplexClient
from omniduplex.clients.websocket_transport import build_realtime_url
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    DuplexEvent,
    ErrorEvent,
    ListenDecision,
    ResponseCreated,
    ResponseDone,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SpeakDecision,
    TextDelta,
    TranscriptDelta,
)

__all__ = [
    "AudioDelta",
    "AudioFormat",
    "Clock",
    "ConnectionResumed",
    "DuplexClient",
    "DuplexClientBase",
    "DuplexClientError",
    "DuplexConnectionError",
    "DuplexEvent",
    "DuplexProtocolError",
    "DuplexSessionClosedError",
    "DuplexTrace",
    "ErrorEvent",
    "EventCollector",
    "InlineDuplexClient",
    "ListenDecision",
    "MonotonicClock",
    "PlaybackCut",
    "PlaybackTracker",
    "RealTimePlayer",
    "ReconnectPolicy",
    "ResponseCreated",
    "ResponseDone",
    "ResponseHandle",
    "ResumeCredentials",
    "ServerEvent",
    "SessionClosed",
    "SessionConfig",
    "SessionCreated",
    "SessionExpired",
    "SpeakDecision",
    "Subscription",
    "TextDelta",
    "TranscriptDelta",
    "Transport",
    "Truncation",
    "acknowledge_collected_playback",
    "audio_data_url",
    "bounded_drain",
    "build_realtime_url",
    "chunk_period_ms",
    "duplex_unit_boundary_ms",
    "has_residual_model_unit",
    "image_data_url",
    "immediate_cut",
    "read_pcm16_wav",
    "reference_audio_data_url",
    "summarize_session_request_metrics",
    "wait_for_condition",
    "wire_type",
    "write_pcm16_wav",
]
