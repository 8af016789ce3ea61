"""Turns of the embedded model: what they ask of its stages, and what they read from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from omniduplex.config.loader import load_pipeline
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.engine.turn_plugin import StageStep, TurnStep
from omniduplex.engine.turns import (
    AnswerRequest,
    SpeechRequest,
    TranscriptionRequest,
    TurnAudio,
    TurnChunk,
    TurnMessage,
    TurnRefused,
    TurnRequest,
    TurnToolCall,
    TurnUsage,
)
from omniduplex.models.local.answer_path import LISTEN_STAGE, SPEAK_STAGE
from omniduplex.models.local.messages import (
    AnswerEnded,
    AnswerText,
    FromListen,
    StartAnswer,
    ToolCalled,
    Transcribe,
    Transcribed,
    decode_how_to_speak,
    decode_to_listen,
    encode,
)
from omniduplex.models.local.turn import LocalTurnPlugin
from omniduplex.stages.messages import StageInput, StageOutput

PLUGIN = LocalTurnPlugin(load_pipeline("local", None))
SPOKEN: frozenset[Literal["text", "audio"]] = frozenset({"text", "audio"})


class Driver:
    """One turn, whose stages are the test."""

    def __init__(self, request: TurnRequest) -> None:
        self.turn = PLUGIN.create_turn("t", request)
        self.asked: list[StageStep] = []
        self.chunks: list[TurnChunk] = []
        self._perform(self.turn.begin())

    def listen_says(
        self, message: FromListen, text: str = "", request_id: str = "t-answer"
    ) -> None:
        output = StageOutput(request_id, text=text, data=encode(message))
        self._perform(self.turn.take(LISTEN_STAGE, output))

    def speak_says(self, text: str, pcm: bytes = b"", *, finished: bool = False) -> None:
        output = StageOutput(
            "t-speak", pcm=pcm, sample_rate_hz=22_050, text=text, finished=finished
        )
        self._perform(self.turn.take(SPEAK_STAGE, output))

    def take_asked(self) -> list[StageStep]:
        asked, self.asked = self.asked, []
        return asked

    def _perform(self, steps: Sequence[TurnStep]) -> None:
        for step in steps:
            if isinstance(step, TurnChunk):
                self.chunks.append(step)
            else:
                self.asked.append(step)


def said(role: Any, *content: str | TurnAudio) -> TurnMessage:
    return TurnMessage(role=role, content=content)


def sound(mark: bytes) -> TurnAudio:
    return TurnAudio(mark * 2, 16_000)


def prompt_asked(driver: Driver) -> ResponsePrompt:
    (step,) = driver.take_asked()
    assert (step.stage_id, step.message.request_id) == (LISTEN_STAGE, "t-answer")
    order = decode_to_listen(step.message.data)
    assert isinstance(order, StartAnswer)
    return order.prompt


def test_a_conversation_becomes_the_prompt_of_an_answer() -> None:
    call = TurnToolCall(call_id="c", name="f", arguments="{}")
    driver = Driver(
        AnswerRequest(
            messages=(
                said("user", "one", "two"),
                TurnMessage(role="assistant", tool_calls=(call,)),
                TurnMessage(role="tool", content=("three",), tool_call_id="c"),
            ),
            temperature=0.5,
            max_tokens=7,
            tools=({"type": "function", "name": "f"},),
            tool_choice="required",
            voice="alloy",
        )
    )

    assert prompt_asked(driver) == ResponsePrompt(
        instructions=None,
        messages=(
            PromptMessage(role="user", text="one\ntwo"),
            PromptMessage(
                role="assistant",
                tool_calls=(TurnToolCall(call_id="c", name="f", arguments="{}"),),
            ),
            PromptMessage(role="tool", text="three", tool_call_id="c"),
        ),
        speak=False,
        temperature=0.5,
        max_tokens=7,
        voice="alloy",
        tools=({"type": "function", "name": "f"},),
        tool_choice="required",
    )


def test_a_system_message_stands_in_for_the_deployments_own() -> None:
    driver = Driver(AnswerRequest(messages=(said("system", "Be brief."), said("user", "Hi."))))
    assert prompt_asked(driver).instructions == ""


def test_sounds_are_recognised_before_the_answer_begins() -> None:
    driver = Driver(
        AnswerRequest(messages=(said("user", sound(b"a"), "and"), said("user", sound(b"b"))))
    )

    hearing = driver.take_asked()
    assert [(s.stage_id, s.message.request_id, s.message.pcm) for s in hearing] == [
        (LISTEN_STAGE, "t-hear0", b"aa"),
        (LISTEN_STAGE, "t-hear1", b"bb"),
    ]
    assert {decode_to_listen(step.message.data) for step in hearing} == {Transcribe()}
    driver.listen_says(Transcribed("second"), request_id="t-hear1")
    assert driver.take_asked() == []
    driver.listen_says(Transcribed("first"), request_id="t-hear0")
    assert [message.text for message in prompt_asked(driver).messages] == ["first\nand", "second"]


def test_a_written_answer_passes_one_stage() -> None:
    driver = Driver(AnswerRequest(messages=(said("user", "Hi."),)))
    driver.take_asked()
    driver.listen_says(AnswerText(), "Hel")
    driver.listen_says(AnswerText(), "lo.")
    driver.listen_says(AnswerEnded("stop", 7, 2))

    assert driver.asked == []
    assert driver.chunks == [
        TurnChunk(text="Hel"),
        TurnChunk(text="lo."),
        TurnChunk(finish_reason="stop", usage=TurnUsage(input_tokens=7, output_tokens=2)),
    ]


def test_a_spoken_answer_passes_both_and_ends_with_its_sound() -> None:
    driver = Driver(AnswerRequest(messages=(said("user", "Hi."),), modalities=SPOKEN))
    assert prompt_asked(driver).speak
    driver.listen_says(AnswerText(), "Hello.")
    driver.listen_says(AnswerEnded("length"))

    assert driver.take_asked() == [
        StageStep(SPEAK_STAGE, StageInput("t-speak", text="Hello.")),
        StageStep(SPEAK_STAGE, StageInput("t-speak", final=True)),
    ]
    assert driver.chunks == []
    driver.speak_says("Hello.", b"\1\2")
    driver.speak_says("", finished=True)
    assert driver.chunks == [
        TurnChunk(text="Hello.", pcm=b"\1\2", sample_rate_hz=22_050),
        TurnChunk(finish_reason="length"),
    ]


def test_a_tool_call_ends_an_answer_without_a_sound() -> None:
    driver = Driver(AnswerRequest(messages=(said("user", "Hi."),), modalities=SPOKEN))
    driver.listen_says(ToolCalled("c", "f", "{}"))
    driver.listen_says(AnswerEnded("stop"))

    assert driver.chunks == [
        TurnChunk(tool_calls=(TurnToolCall(call_id="c", name="f", arguments="{}"),)),
        TurnChunk(finish_reason="tool_calls"),
    ]


def test_speech_is_given_clause_by_clause() -> None:
    driver = Driver(SpeechRequest(text="Come in, please. The kitchen is on the left"))

    clauses = driver.take_asked()
    assert {step.stage_id for step in clauses} == {SPEAK_STAGE}
    assert len(clauses) > 1
    assert "".join(step.message.text for step in clauses) == (
        "Come in, please. The kitchen is on the left"
    )
    assert [step.message.final for step in clauses] == [False] * (len(clauses) - 1) + [True]
    driver.speak_says("Come in,", b"\1\2")
    driver.speak_says("", finished=True)
    assert [(c.pcm, c.finish_reason) for c in driver.chunks] == [(b"\1\2", None), (b"", "stop")]


def test_a_turn_is_spoken_as_fast_as_it_is_wanted() -> None:
    driver = Driver(SpeechRequest(text="Come in, please. The kitchen is on the left", speed=2.0))
    clauses = driver.take_asked()
    answer = Driver(AnswerRequest(messages=(said("user", "Hi."),), modalities=SPOKEN, speed=2.0))
    prompt_asked(answer)
    answer.listen_says(AnswerText(), "Hello.")
    clauses += answer.take_asked()

    assert {decode_how_to_speak(step.message.data).speed for step in clauses} == {2.0}


def test_a_text_of_nothing_is_refused() -> None:
    with pytest.raises(TurnRefused, match="nothing to say"):
        PLUGIN.create_turn("t", SpeechRequest(text=" \n"))


def test_a_recording_is_one_request_to_the_listening_stage() -> None:
    driver = Driver(TranscriptionRequest(audio=sound(b"a"), language="en"))
    (step,) = driver.take_asked()
    assert (step.message.pcm, step.message.final) == (b"aa", True)
    driver.listen_says(Transcribed("hello"), request_id="t-hear")

    assert driver.chunks == [TurnChunk(text="hello", finish_reason="stop")]


def test_a_language_that_is_not_recognised_is_refused() -> None:
    assert PLUGIN.features.languages == ("en",)
    with pytest.raises(TurnRefused, match="'en' only") as refused:
        PLUGIN.create_turn("t", TranscriptionRequest(audio=sound(b"a"), language="nl"))
    assert (refused.value.code, refused.value.param) == ("unsupported", "language")
