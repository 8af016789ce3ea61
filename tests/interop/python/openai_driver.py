"""The `openai` package: `AsyncOpenAI().realtime.connect`, as its examples use it."""

from __future__ import annotations

import asyncio
import base64
from importlib.metadata import version
from typing import Any

from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from tests.interop.python.talk import (
    INSTRUCTIONS,
    RATE_HZ,
    TOOL,
    Arguments,
    Conversation,
    Report,
    arguments,
    run,
)


class OpenAILine:
    def __init__(self, connection: AsyncRealtimeConnection, report: Report) -> None:
        self._connection = connection
        self._report = report

    async def append(self, pcm: bytes) -> None:
        await self._connection.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())

    async def end_turn(self, pcm: bytes) -> None:
        await self.append(pcm)
        await self._connection.input_audio_buffer.commit()
        await self._connection.response.create()

    async def write(self, text: str) -> None:
        await self._connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": text}],
            }
        )
        await self._connection.response.create()

    async def interrupt(self) -> None:
        await self._connection.response.cancel()

    async def answer_call(self, call_id: str, output: str) -> None:
        await self._connection.conversation.item.create(
            item={"type": "function_call_output", "call_id": call_id, "output": output}
        )
        await self._connection.response.create()


def session(given: Arguments) -> Any:
    pcm = {"type": "audio/pcm", "rate": RATE_HZ}
    detection = {"type": given.vad, "create_response": True, "interrupt_response": True}
    return {
        "type": "realtime",
        "output_modalities": ["audio"],
        "instructions": INSTRUCTIONS,
        "tools": [TOOL] if given.mode == "tool" else [],
        "audio": {
            "input": {
                "format": pcm,
                "transcription": {"model": "whisper-1"},
                "turn_detection": None if given.vad == "none" else detection,
            },
            "output": {"format": pcm, "voice": "alloy"},
        },
    }


async def talk(given: Arguments, report: Report) -> None:
    async with (
        AsyncOpenAI(api_key="sk-nobody", base_url=given.http) as client,
        client.realtime.connect(model=given.model) as connection,
    ):
        conversation = Conversation(given, OpenAILine(connection, report), report)
        try:
            async for event in connection:
                match event.type:
                    case "session.created":
                        await connection.session.update(session=session(given))
                    case "response.output_audio.delta":
                        report.played_bytes += len(base64.b64decode(event.delta))
                    case "response.function_call_arguments.done":
                        report.calls.append(event.arguments)
                    case "error":
                        report.complaints.append(event.error.message)
                await conversation.take(event.to_dict())
                if conversation.over:
                    return
        finally:
            await conversation.hang_up()


def main() -> None:
    given = arguments()
    report = Report("openai (Python)", version("openai"))
    asyncio.run(run(report, given.timeout_s, lambda: talk(given, report)))


if __name__ == "__main__":
    main()
