"""The door of the client library."""

from omniduplex.clients.audio import (
    audio_data_url,
    bytes_for_ms,
    duration_ms,
    image_data_url,
    read_pcm16_wav,
    write_pcm16_wav,
)
from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock, MonotonicClock
from omniduplex.clients.collector import EventCollector, acknowledge_collected_playback
from omniduplex.clients.config import SessionConfig
from omniduplex.clients.errors import (
    DuplexClientError,
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
)
from omniduplex.clients.events import ServerEvent, wire_type
from omniduplex.clients.inline_duplex import InlineDuplexClient
from omniduplex.clients.playback import RealTimePlayer
from omniduplex.clients.reconnect import ConnectionResumed, ReconnectPolicy, ResumeCredentials
from omniduplex.clients.response import ResponseHandle
from omniduplex.clients.subscription import Subscription
from omniduplex.clients.transport import Transport
from omniduplex.clients.websocket import DuplexClient, build_realtime_url

__all__ = [
    "Clock",
    "ConnectionResumed",
    "DuplexClient",
    "DuplexClientBase",
    "DuplexClientError",
    "DuplexConnectionError",
    "DuplexProtocolError",
    "DuplexSessionClosedError",
    "EventCollector",
    "InlineDuplexClient",
    "MonotonicClock",
    "RealTimePlayer",
    "ReconnectPolicy",
    "ResponseHandle",
    "ResumeCredentials",
    "ServerEvent",
    "SessionConfig",
    "Subscription",
    "Transport",
    "acknowledge_collected_playback",
    "audio_data_url",
    "build_realtime_url",
    "bytes_for_ms",
    "duration_ms",
    "image_data_url",
    "read_pcm16_wav",
    "wire_type",
    "write_pcm16_wav",
]
