"""A session in plain OpenAI Realtime JSON, to any server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pybase64

from omniduplex.audio.pcm import duration_ms
from omniduplex.audio.resample import StreamResampler
from omniduplex.benchmarks.openai_socket import OpenAIConversation, OpenAISocket
from omniduplex.benchmarks.serve.session import Arrival, ServeSession, stage_metrics
from omniduplex.benchmarks.turns.line import LineError
from omniduplex.benchmarks.turns.openai_line import (
    AUDIO_DELTAS,
    RATE_HZ,
    TRANSCRIPT_DELTAS,
    realtime_url,
)
from omniduplex.clients.microphone import RATE_HZ as MICROPHONE_HZ

TEXT_DELTAS = (*TRANSCRIPT_DELTAS, "response.output_text.delta", "response.text.delta")


class _Response(msgspec.Struct, frozen=True):
    id: str | None = None
    status: str | None = None
    metadata: dict[str, Any] | None = None


class _Error(msgspec.Struct, frozen=True):
    code: str | None = None
    message: str | None = None


class WireEvent(msgspec.Struct, frozen=True):
    """The few fields of an official event that are measured."""

    type: str
    response_id: str | None = None
    delta: str | None = None
    response: _Response | None = None
    error: _Error | None = None


class OpenAISession(OpenAIConversation, ServeSession):
    """One session without turn detection; the client commits and asks for the answer."""

    turn_end = "input_audio_buffer.commit, with response.create right behind it"

    def __init__(self, url: str, model: str, api_key: str | None = None) -> None:
        self._resampler = StreamResampler(MICROPHONE_HZ, RATE_HZ)
        self._socket = OpenAISocket(realtime_url(url, model), api_key)

    async def send(self, pcm: bytes) -> None:
        audio = pybase64.b64encode_as_string(self._resampler.process(pcm))
        if audio:
            await self._socket.send({"type": "input_audio_buffer.append", "audio": audio})

    async def end_turn(self) -> None:
        await self._socket.send({"type": "input_audio_buffer.commit"})
        await self._socket.send({"type": "response.create"})

    async def events(self) -> AsyncIterator[Arrival]:
        async for event in self._messages():
            found = arrival(event)
            if found is not None:
                yield found

    async def report_heard(self, response_id: str | None, ms: float) -> None:
        """The dialect only knows answers that were not heard to their end."""

    async def _begin(self) -> None:
        await self._socket.send(session_update())
        async for event in self._messages():
            if event.type == "error":
                raise LineError(f"the server refused the session: {_reason(event.error)}")
            if event.type == "session.updated":
                return
        raise LineError("the server closed the session before it began")

    async def _messages(self) -> AsyncIterator[WireEvent]:
        try:
            async for message in self._socket.messages():
                yield msgspec.json.decode(message, type=WireEvent)
        except msgspec.MsgspecError as error:
            raise LineError(f"the server sent what is no event: {error}") from error


def session_update() -> dict[str, Any]:
    """The command that asks for audio both ways and leaves the turns to the client."""
    pcm = {"type": "audio/pcm", "rate": RATE_HZ}
    return {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "output_modalities": ["audio"],
            "audio": {
                "input": {"format": pcm, "turn_detection": None},
                "output": {"format": pcm},
            },
        },
    }


def arrival(event: WireEvent) -> Arrival | None:
    """What is measured of an event; None for all others."""
    if event.type in AUDIO_DELTAS:
        lasts = duration_ms(len(pybase64.b64decode(event.delta or "")), RATE_HZ)
        return Arrival(response_id=event.response_id, audio_ms=lasts)
    if event.type in TEXT_DELTAS:
        return Arrival(response_id=event.response_id, text=True)
    if event.type == "response.done" and event.response is not None:
        return Arrival(
            response_id=event.response.id,
            status=event.response.status or "completed",
            stages=stage_metrics(event.response.metadata),
        )
    if event.type == "error":
        return Arrival(error=_reason(event.error))
    return None


def _reason(error: _Error | None) -> str:
    return "no reason" if error is None else f"{error.code}: {error.message}"
