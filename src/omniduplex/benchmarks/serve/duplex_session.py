"""A session in the duplex dialect, by the client library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from omniduplex.benchmarks.serve.session import Arrival, ServeSession, stage_metrics
from omniduplex.clients import (
    Clock,
    DuplexClient,
    ServerEvent,
    SessionConfig,
    Subscription,
)
from omniduplex.clients.audio import delta_format
from omniduplex.clients.microphone import RATE_HZ
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ErrorEvent,
    ResponseDone,
    TextDelta,
    TranscriptDelta,
)


class DuplexSession(ServeSession):
    """One session of a server of ours; commits end its turns."""

    turn_end = "input_audio_buffer.commit"

    def __init__(self, url: str, model: str, clock: Clock, api_key: str | None = None) -> None:
        # A model with an ear of its own may hear the end of a turn in a question's pause.
        self._config = SessionConfig(
            input_audio=AudioFormat(sample_rate_hz=RATE_HZ), auto_response=False
        )
        self._client = DuplexClient(
            url,
            model=model,
            clock=clock,
            reconnect=None,
            config=self._config,
            api_key=api_key,
        )
        self._events: Subscription[ServerEvent] | None = None

    async def __aenter__(self) -> Self:
        self._events = self._client.events()
        await self._client.open()
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

    async def end_turn(self) -> None:
        await self._client.commit(create_response=True)

    async def events(self) -> AsyncIterator[Arrival]:
        assert self._events is not None
        async for event in self._events:
            found = arrival(event, self._config.output_audio)
            if found is not None:
                yield found

    async def report_heard(self, response_id: str | None, ms: float) -> None:
        await self._client.ack_playback(ms, response_id=response_id)


def arrival(event: ServerEvent, output: AudioFormat) -> Arrival | None:
    """What is measured of an event; None for all others.

    A report of playback that comes too late costs nobody anything: its refusal is no error.
    """
    match event:
        case AudioDelta():
            lasts = delta_format(event, output).duration_ms(len(event.delta))
            return Arrival(response_id=event.response_id, audio_ms=lasts)
        case TranscriptDelta() | TextDelta():
            return Arrival(response_id=event.response_id, text=True)
        case ResponseDone():
            return Arrival(
                response_id=event.response_id,
                status=event.response.status,
                stages=stage_metrics(event.response.metadata),
            )
        case ErrorEvent() if not event.error.code.startswith("playback_"):
            return Arrival(error=f"{event.error.code}: {event.error.message}")
    return None
