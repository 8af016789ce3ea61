"""One session of the unmodified `openai` package, and all that it received."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from tests.e2e.recordings import Microphone

RATE_HZ = 24_000
TIMEOUT_S = 200.0


class OpenAICaller:
    """A connection that reads all the time, so that a test may look for what has come."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []
        self.microphone = Microphone(self._append, RATE_HZ)
        self._arrived = asyncio.Condition()

    async def until(self, wanted: Callable[[list[dict[str, Any]]], Any]) -> Any:
        """Wait until something is true of the events so far; returns what `wanted` found."""
        async with asyncio.timeout(TIMEOUT_S), self._arrived:
            await self._arrived.wait_for(lambda: wanted(self.events))
            return wanted(self.events)

    def all(self, wire_type: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == wire_type]

    async def first(self, wire_type: str) -> dict[str, Any]:
        return await self.nth(wire_type, 1)

    async def nth(self, wire_type: str, count: int) -> dict[str, Any]:
        """The event of this type that comes as number `count`."""
        found = await self.until(
            lambda _: events[count - 1] if len(events := self.all(wire_type)) >= count else None
        )
        assert isinstance(found, dict)
        return found

    async def answer(self) -> dict[str, Any]:
        """The first response that ends without the user talking over it."""
        found = await self.until(
            lambda _: [
                event["response"]
                for event in self.all("response.done")
                if event["response"]["status"] != "cancelled"
            ]
        )
        assert isinstance(found[0], dict)
        return found[0]

    def audio(self, response_id: str) -> bytes:
        deltas = self.all("response.output_audio.delta")
        mine = (e["delta"] for e in deltas if e["response_id"] == response_id)
        return b"".join(map(base64.b64decode, mine))

    def transcript(self, response_id: str) -> str:
        deltas = self.all("response.output_audio_transcript.delta")
        return "".join(e["delta"] for e in deltas if e["response_id"] == response_id)

    async def read(self) -> None:
        async for event in self.connection:
            async with self._arrived:
                self.events.append(event.to_dict())
                self._arrived.notify_all()

    async def _append(self, pcm: bytes) -> None:
        await self.connection.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())


@asynccontextmanager
async def openai_caller(http: str, model: str) -> AsyncIterator[OpenAICaller]:
    """Connect, and read all that comes."""
    async with (
        AsyncOpenAI(api_key="sk-nobody", base_url=f"{http}/v1") as client,
        client.realtime.connect(model=model) as connection,
    ):
        caller = OpenAICaller(connection)
        reading = asyncio.create_task(caller.read())
        try:
            yield caller
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


@asynccontextmanager
async def openai_session(http: str, model: str, vad: str) -> AsyncIterator[OpenAICaller]:
    """Connect as the official examples do, with turn detection on and the microphone open."""
    async with openai_caller(http, model) as caller:
        await caller.first("session.created")
        pcm: Any = {"type": "audio/pcm", "rate": RATE_HZ}
        detection: Any = {"type": vad, "create_response": True, "interrupt_response": True}
        await caller.connection.session.update(
            session={
                "type": "realtime",
                "output_modalities": ["audio"],
                "instructions": "Answer in one short sentence.",
                "audio": {
                    "input": {
                        "format": pcm,
                        "transcription": {"model": "whisper-1"},
                        "turn_detection": detection,
                    },
                    "output": {"format": pcm, "voice": "alloy"},
                },
            }
        )
        # The server may announce the session once more when it opens.
        await caller.until(lambda events: events[-1]["type"] == "session.updated")
        async with caller.microphone.open():
            yield caller
