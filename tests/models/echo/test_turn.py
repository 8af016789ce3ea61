"""Turns of the echo model: steps go straight to the stage, outputs straight back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.models.echo.driver import echo_pipeline, tone

from omniduplex.engine.turn_plugin import TurnStep
from omniduplex.engine.turns import (
    AnswerRequest,
    SpeechRequest,
    TranscriptionRequest,
    TurnAudio,
    TurnChunk,
    TurnMessage,
    TurnRequest,
    TurnToolCall,
)
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.stage import EchoStage
from omniduplex.models.echo.turn import EchoTurnPlugin
from omniduplex.stages.messages import StageOutput

WEATHER = {"type": "function", "name": "weather"}


def run(request: TurnRequest) -> list[TurnChunk]:
    outputs: list[StageOutput] = []
    stage = EchoStage(EchoOptions(), outputs.append)
    stage.load()
    turn = EchoTurnPlugin(echo_pipeline()).create_turn("t", request)
    chunks: list[TurnChunk] = []

    def perform(steps: Any) -> None:
        step: TurnStep
        for step in steps:
            if isinstance(step, TurnChunk):
                chunks.append(step)
            else:
                assert step.message.request_id.startswith("t-")
                stage.step((step.message,))

    perform(turn.begin())
    while outputs:
        perform(turn.take(0, outputs.pop(0)))
    return chunks


def said(role: Any, *content: str | TurnAudio) -> TurnMessage:
    return TurnMessage(role=role, content=content)


def text(chunks: list[TurnChunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def test_the_last_words_of_the_user_are_answered() -> None:
    chunks = run(AnswerRequest(messages=(said("user", "a"), said("assistant", "b"))))

    assert text(chunks) == "You said a"
    assert [chunk.finish_reason for chunk in chunks[-2:]] == [None, "stop"]


def test_a_tool_has_the_last_word() -> None:
    messages = (said("user", "call weather"), said("tool", "4 degrees"))
    assert text(run(AnswerRequest(messages=messages, tools=(WEATHER,)))) == "Tool said 4 degrees"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "weather"}])
def test_a_tool_that_has_to_be_called_is_called_whatever_is_said(choice: Any) -> None:
    messages = (said("user", "good day"),)
    chunks = run(AnswerRequest(messages=messages, tools=(WEATHER,), tool_choice=choice))

    arguments = '{"text":"good day"}'
    assert [call for chunk in chunks for call in chunk.tool_calls] == [
        TurnToolCall(call_id="call_1", name="weather", arguments=arguments)
    ]
    assert chunks[-1].finish_reason == "tool_calls"


def test_a_tool_is_called_unless_none_may_be() -> None:
    asked = AnswerRequest(messages=(said("user", "call weather"),), tools=(WEATHER,))
    (chunk,) = run(asked)

    assert chunk.tool_calls == (TurnToolCall(call_id="call_1", name="weather", arguments="{}"),)
    assert chunk.finish_reason == "tool_calls"
    free = AnswerRequest(messages=asked.messages, tools=asked.tools, tool_choice="none")
    assert text(run(free)) == "You said call weather"


def test_a_sound_that_is_silence_has_no_words() -> None:
    silence = TurnAudio(bytes(32_000), 16_000)
    assert text(run(TranscriptionRequest(audio=silence))) == ""
    assert text(run(AnswerRequest(messages=(said("user", silence, "so?"),)))) == "You said so?"


def test_a_short_sound_is_heard_to_its_end() -> None:
    sound = TurnAudio(tone(1000, 300), 16_000)
    assert text(run(TranscriptionRequest(audio=sound))) == "tone 300 Hz 1.0 s"


def test_speech_sounds() -> None:
    chunks = run(SpeechRequest(text="a b c d"))
    assert sum(len(chunk.pcm) for chunk in chunks) == 2 * 24 * 1600


@pytest.mark.parametrize(
    ("options", "able"),
    [
        (EchoOptions(), True),
        (EchoOptions(paced=True), False),
        (EchoOptions(self_start=True), False),
    ],
)
def test_a_deployment_that_needs_flowing_audio_takes_no_turns(
    options: EchoOptions, able: bool
) -> None:
    features = EchoTurnPlugin(echo_pipeline(options)).features
    assert features.supports_chat_completions is able
    assert features.supports_speech is able
    assert features.supports_transcription is able
