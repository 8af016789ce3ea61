"""A line in plain OpenAI Realtime JSON, to any server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
import pybase64

from omniduplex.benchmarks.openai_socket import OpenAIConversation, OpenAISocket
from omniduplex.benchmarks.turns.line import Line, LineError, LineEvent, SessionWish

RATE_HZ = 24_000
"""The only PCM rate of OpenAI Realtime."""
PATH = "/v1/realtime"
AUDIO_DELTAS = ("response.output_audio.delta", "response.audio.delta")
TRANSCRIPT_DELTAS = ("response.output_audio_transcript.delta", "response.audio_transcript.delta")
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
SPEECH_STARTED = "input_audio_buffer.speech_started"
SPEECH_STOPPED = "input_audio_buffer.speech_stopped"


class _Response(msgspec.Struct, frozen=True):
    id: str | None = None
    status: str | None = None


class _Error(msgspec.Struct, frozen=True):
    code: str | None = None
    message: str | None = None


class WireEvent(msgspec.Struct, frozen=True):
    """The few fields of an official event that are read; all others are passed over."""

    type: str
    response_id: str | None = None
    item_id: str | None = None
    delta: str | None = None
    transcript: str | None = None
    audio_end_ms: float | None = None
    response: _Response | None = None
    error: _Error | None = None


class OpenAILine(OpenAIConversation, Line):
    """One session as the official examples open it: the client clears its loudspeaker itself."""

    rate_hz = RATE_HZ

    def __init__(self, url: str, wish: SessionWish) -> None:
        self._wish = wish
        self._socket = OpenAISocket(realtime_url(url, wish.model), wish.api_key)
        self._items: dict[str, str] = {}

    async def send(self, pcm: bytes) -> None:
        audio = pybase64.b64encode_as_string(pcm)
        await self._socket.send({"type": "input_audio_buffer.append", "audio": audio})

    async def events(self) -> AsyncIterator[LineEvent]:
        async for message in self._socket.messages():
            event = msgspec.json.decode(message, type=WireEvent)
            if event.response_id and event.item_id:
                self._items[event.response_id] = event.item_id
            yield line_event(event, clears=self._wish.interrupts)

    async def report_heard(self, response_id: str, ms: float, *, cut_off: bool) -> None:
        item_id = self._items.get(response_id)
        if cut_off and item_id is not None:
            await self._socket.send(
                {
                    "type": "conversation.item.truncate",
                    "item_id": item_id,
                    "content_index": 0,
                    "audio_end_ms": int(ms),
                }
            )

    async def _begin(self) -> None:
        """Ask for the session, and wait until it stands."""
        await self._socket.send(session_update(self._wish))
        async for event in self.events():
            if event.error is not None:
                raise LineError(f"the server refused the session: {event.error}")
            if event.type == "session.updated":
                return
        raise LineError("the server closed the session before it began")


def realtime_url(url: str, model: str) -> str:
    """The endpoint's URL: the default path when it has none, and the model."""
    parts = urlsplit(url)
    query = {"model": model, **dict(parse_qsl(parts.query, keep_blank_values=True))}
    path = parts.path if parts.path not in ("", "/") else PATH
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode(query), ""))


def session_update(wish: SessionWish) -> dict[str, Any]:
    """The command that asks for audio both ways and turns by the server."""
    pcm = {"type": "audio/pcm", "rate": RATE_HZ}
    detection = {
        "type": wish.vad,
        "create_response": True,
        "interrupt_response": wish.interrupts,
    }
    return {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "output_modalities": ["audio"],
            "instructions": wish.instructions,
            "audio": {
                "input": {"format": pcm, "turn_detection": detection},
                "output": {"format": pcm},
            },
        },
    }


def line_event(event: WireEvent, *, clears: bool) -> LineEvent:
    """What an official event means on a time line; `clears`: the client stops at speech."""
    kind, delta = event.type, event.delta or ""
    if kind in AUDIO_DELTAS:
        return LineEvent(type=kind, response_id=event.response_id, audio=pybase64.b64decode(delta))
    if kind in TRANSCRIPT_DELTAS:
        return LineEvent(type=kind, response_id=event.response_id, text=delta)
    if kind == "response.done" and event.response is not None:
        return LineEvent(
            type=kind,
            response_id=event.response.id,
            ended=True,
            silences=event.response.status == "cancelled",
            note=str(event.response.status),
        )
    if kind == "output_audio_buffer.cleared":
        return LineEvent(type=kind, response_id=event.response_id, silences=True)
    if kind == "error" and event.error is not None:
        return LineEvent(type=kind, error=f"{event.error.code}: {event.error.message}")
    if kind == TRANSCRIBED:
        return LineEvent(type=kind, note=event.transcript or "")
    if kind == SPEECH_STOPPED:
        return LineEvent(type=kind, audio_ms=event.audio_end_ms)
    return LineEvent(type=kind, silences=clears and kind == SPEECH_STARTED)
