"""A line in the duplex dialect, by the client library with the local preset."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import msgspec

from omniduplex.benchmarks.turns.line import Line, LineEvent, SessionWish
from omniduplex.clients import Clock, DuplexClient, ServerEvent, Subscription, wire_type
from omniduplex.clients.local import create_duplex_session_config
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ErrorEvent,
    OutputCleared,
    OverlapDecision,
    ResponseDone,
    SpeechStopped,
    TranscriptDelta,
    TranscriptionCompleted,
    TurnDetectionPatch,
)

RATE_HZ = 16_000


class DuplexLine(Line):
    """One session of a server of ours."""

    rate_hz = RATE_HZ

    def __init__(self, url: str, wish: SessionWish, clock: Clock) -> None:
        audio = AudioFormat(sample_rate_hz=RATE_HZ)
        detection = TurnDetectionPatch(type=wish.vad)
        if not wish.interrupts:
            detection = msgspec.structs.replace(detection, interrupt_response=False)
        self._client = DuplexClient(
            url,
            model=wish.model,
            clock=clock,
            reconnect=None,
            api_key=wish.api_key,
            config=create_duplex_session_config(
                input_audio=audio,
                output_audio=audio,
                turn_detection=detection,
                overlap_policy=wish.policy,
                instructions=wish.instructions,
            ),
        )
        self._events: Subscription[ServerEvent] | None = None

    async def __aenter__(self) -> Self:
        self._events = self._client.events()
        await self._client.open()
        self.policy_in_force = self._client.session_info.overlap_policy
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def send(self, pcm: bytes) -> None:
        await self._client.append_audio(pcm)

    async def events(self) -> AsyncIterator[LineEvent]:
        assert self._events is not None
        async for event in self._events:
            yield line_event(event)

    async def report_heard(self, response_id: str, ms: float, *, cut_off: bool) -> None:
        await self._client.ack_playback(ms, response_id=response_id, truncate=cut_off)


def line_event(event: ServerEvent) -> LineEvent:
    """What an event of the duplex dialect means on a time line."""
    kind = wire_type(event)
    match event:
        case AudioDelta():
            return LineEvent(type=kind, response_id=event.response_id, audio=event.delta)
        case TranscriptDelta():
            return LineEvent(type=kind, response_id=event.response_id, text=event.delta)
        case ResponseDone():
            status = event.response.status
            return LineEvent(
                type=kind,
                response_id=event.response_id,
                ended=True,
                silences=status == "cancelled",
                note=str(status),
            )
        case OutputCleared():
            return LineEvent(type=kind, response_id=event.response_id, silences=True)
        case ErrorEvent():
            return LineEvent(type=kind, error=f"{event.error.code}: {event.error.message}")
    return _of_the_user(event)


def _of_the_user(event: ServerEvent) -> LineEvent:
    kind = wire_type(event)
    match event:
        case OverlapDecision():
            return LineEvent(
                type=kind,
                note=f"{event.action}: {event.reason}",
                interrupted_after_ms=_interrupted_after_ms(event),
            )
        case SpeechStopped():
            return LineEvent(type=kind, audio_ms=event.audio_end_ms)
        case TranscriptionCompleted():
            return LineEvent(type=kind, note=event.transcript)
    return LineEvent(type=kind)


def _interrupted_after_ms(event: OverlapDecision) -> float | None:
    if event.action != "barge_in" or isinstance(event.metadata, msgspec.UnsetType):
        return None
    heard_ms = event.metadata.overlap_speech_ms
    return None if isinstance(heard_ms, msgspec.UnsetType) else heard_ms
