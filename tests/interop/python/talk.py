"""What every driver plays: one conversation, told by raw server events, by a client's calls."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

RATE_HZ = 24_000
CHUNK_MS = 40
CHUNK_BYTES = 2 * RATE_HZ * CHUNK_MS // 1000
# The user talks over an answer once this much of it has come.
HEARD_BYTES = 2 * RATE_HZ * 300 // 1000

QUESTION = "How is the weather? Please call get_weather Paris"
REPORT = "21 degrees and sunny"
INSTRUCTIONS = "Answer in one short sentence."
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The place."}},
        "required": ["text"],
    },
}

Event = dict[str, Any]


@dataclass(frozen=True)
class Arguments:
    """What a driver is told; `speech` and `barge` are 24 kHz mono PCM16."""

    url: str
    """As ws://HOST:PORT/v1."""
    model: str
    mode: Literal["turn", "interrupt", "tool"]
    vad: Literal["server_vad", "semantic_vad", "none"]
    speech: bytes
    barge: bytes
    speed: float
    timeout_s: float

    @property
    def http(self) -> str:
        return self.url.replace("ws", "http", 1)


def arguments() -> Arguments:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--mode", choices=["turn", "interrupt", "tool"], required=True)
    parser.add_argument("--vad", choices=["server_vad", "semantic_vad", "none"], required=True)
    parser.add_argument("--speech", type=Path, required=True)
    parser.add_argument("--barge", type=Path, required=True)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--timeout", type=float, default=30.0)
    given = parser.parse_args()
    return Arguments(
        url=given.url,
        model=given.model,
        mode=given.mode,
        vad=given.vad,
        speech=given.speech.read_bytes(),
        barge=given.barge.read_bytes(),
        speed=given.speed,
        timeout_s=given.timeout,
    )


class Line(Protocol):
    """What a conversation asks of a client."""

    async def append(self, pcm: bytes) -> None: ...

    async def end_turn(self, pcm: bytes) -> None:
        """Send the last audio of a turn, commit it and ask for an answer."""

    async def write(self, text: str) -> None:
        """Say something in writing and ask for an answer."""

    async def interrupt(self) -> None:
        """Stop the answer by hand, where the server hears no interruptions."""

    async def answer_call(self, call_id: str, output: str) -> None:
        """Hand over a tool's output; a client that does so by itself does nothing here."""


@dataclass
class Report:
    """What a driver prints as one line of JSON."""

    client: str
    version: str
    complaints: list[str] = field(default_factory=list)
    """What the client itself found wrong."""
    events: list[Event] = field(default_factory=list)
    """Server events as they came; audio is left out, `audio_bytes` counts it."""
    played_bytes: int = 0
    """Audio that the client handed to its application."""
    calls: list[str] = field(default_factory=list)
    """Arguments of the calls of the tool."""
    interruptions: int | None = None
    """How often the client told its application to fall silent; null if it never tells."""

    def print(self) -> None:
        sys.stdout.write(json.dumps(vars(self)) + "\n")
        sys.stdout.flush()


class Microphone:
    """Streams all the time: speech when there is some, else silence."""

    def __init__(self, line: Line, speed: float, *, ends_turns: bool) -> None:
        self._line = line
        self._period_s = CHUNK_MS / 1000 / speed
        self._ends_turns = ends_turns
        self._queued = b""

    def say(self, pcm: bytes) -> None:
        self._queued += pcm

    async def stream(self) -> None:
        due = asyncio.get_running_loop().time()
        while True:
            chunk, self._queued = self._queued[:CHUNK_BYTES], self._queued[CHUNK_BYTES:]
            was_last = bool(chunk) and not self._queued
            send = self._line.end_turn if was_last and self._ends_turns else self._line.append
            await send(chunk.ljust(CHUNK_BYTES, b"\0"))
            due += self._period_s
            await asyncio.sleep(due - asyncio.get_running_loop().time())


class Conversation:
    """Follows the server's events, does what the mode wants done, and knows when it is over."""

    def __init__(self, given: Arguments, line: Line, report: Report) -> None:
        self._given = given
        self._line = line
        self._report = report
        self._microphone = Microphone(line, given.speed, ends_turns=given.vad == "none")
        self._streaming: asyncio.Task[None] | None = None
        self._interrupted: str | None = None
        self.over = False

    async def take(self, event: Event) -> None:
        """Keep a server event and react to it."""
        self._report.events.append(_without_audio(event))
        match event["type"]:
            case "session.updated" if self._streaming is None:
                self._streaming = asyncio.create_task(self._microphone.stream())
                if self._given.mode == "tool":
                    await self._line.write(QUESTION)
                else:
                    self._microphone.say(self._given.speech)
            case "response.output_audio.delta" if self._given.mode == "interrupt":
                await self._talk_over(event["response_id"])
            case "response.done":
                await self._end(event["response"])

    async def _talk_over(self, response_id: str) -> None:
        deltas = (e for e in self._report.events if e["type"] == "response.output_audio.delta")
        heard = sum(e["audio_bytes"] for e in deltas if e["response_id"] == response_id)
        if self._interrupted is None and heard >= HEARD_BYTES:
            self._interrupted = response_id
            if self._given.vad == "none":
                await self._line.interrupt()
            self._microphone.say(self._given.barge)

    async def _end(self, response: Event) -> None:
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        for call in calls:
            await self._line.answer_call(call["call_id"], REPORT)
        if self._given.mode == "interrupt":
            self.over = self._interrupted not in (None, response["id"])
        else:
            # A pause in mid-sentence may have ended the turn too soon: then it goes on.
            self.over = not calls and response["status"] != "cancelled"

    async def hang_up(self) -> None:
        if self._streaming is not None:
            self._streaming.cancel()
            with suppress(asyncio.CancelledError):
                await self._streaming


def _without_audio(event: Event) -> Event:
    if event["type"] != "response.output_audio.delta":
        return event
    return {**event, "delta": "", "audio_bytes": len(base64.b64decode(event["delta"]))}


async def run(report: Report, timeout_s: float, talk: Callable[[], Awaitable[None]]) -> None:
    """Hold a conversation and print its report, whatever came of it."""
    try:
        async with asyncio.timeout(timeout_s):
            await talk()
    except TimeoutError:
        report.complaints.append(f"not over after {timeout_s} s")
    report.print()
