"""The `openai-agents` package: a RealtimeSession, which validates all it receives."""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from typing import Any

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner
from agents.realtime.model_inputs import RealtimeModelSendRawMessage
from tests.interop.python.talk import (
    INSTRUCTIONS,
    REPORT,
    Arguments,
    Conversation,
    Report,
    arguments,
    run,
)


class AgentsLine:
    def __init__(self, session: Any) -> None:
        self._session = session

    async def append(self, pcm: bytes) -> None:
        await self._session.send_audio(pcm)

    async def end_turn(self, pcm: bytes) -> None:
        await self._session.send_audio(pcm, commit=True)
        # The session has no word for this.
        create = RealtimeModelSendRawMessage(message={"type": "response.create"})
        await self._session.model.send_event(create)

    async def write(self, text: str) -> None:
        await self._session.send_message(text)

    async def interrupt(self) -> None:
        await self._session.interrupt()

    async def answer_call(self, call_id: str, output: str) -> None:
        """The session calls the tool and hands its output over."""


class Complaints(logging.Handler):
    """What the package logs as a warning or worse."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.WARNING)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self._report.complaints.append(record.getMessage())


def settings(given: Arguments) -> dict[str, Any]:
    """The model's name and turn detection; semantic_vad is the package's own default."""
    if given.vad == "semantic_vad":
        return {"model_name": given.model}
    detection = {"type": "server_vad", "interrupt_response": True}
    return {
        "model_name": given.model,
        "turn_detection": detection if given.vad == "server_vad" else None,
    }


def agent(given: Arguments, report: Report) -> Any:
    def get_weather(text: str) -> str:
        """Tells the weather of a place."""
        report.calls.append(text)
        return REPORT

    tools = [function_tool(get_weather)] if given.mode == "tool" else []
    return RealtimeAgent(name="interop", instructions=INSTRUCTIONS, tools=tools)


async def talk(given: Arguments, report: Report) -> None:
    runner = RealtimeRunner(agent(given, report))
    session = await runner.run(
        model_config={
            "api_key": "sk-nobody",
            "url": f"{given.url}/realtime?model={given.model}",
            "initial_model_settings": settings(given),
        }
    )
    async with session:
        conversation = Conversation(given, AgentsLine(session), report)
        try:
            async for event in session:
                await take(event, conversation, report)
                # The session tells of the end of an answer after the server's own event.
                if conversation.over and event.type == "agent_end":
                    return
        finally:
            await conversation.hang_up()


async def take(event: Any, conversation: Conversation, report: Report) -> None:
    match event.type:
        case "raw_model_event" if event.data.type == "raw_server_event":
            await conversation.take(event.data.data)
        case "audio":
            report.played_bytes += len(event.audio.data)
        case "audio_interrupted":
            assert report.interruptions is not None
            report.interruptions += 1
        case "error":
            report.complaints.append(str(event.error))


def main() -> None:
    given = arguments()
    report = Report("openai-agents (Python)", version("openai-agents"), interruptions=0)
    logging.getLogger("openai.agents").addHandler(Complaints(report))
    asyncio.run(run(report, given.timeout_s, lambda: talk(given, report)))


if __name__ == "__main__":
    main()
