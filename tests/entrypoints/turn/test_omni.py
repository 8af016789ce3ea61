"""The two doors for turn requests, without a server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.entrypoints.turn.sounds import tone

from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.turns import (
    AnswerRequest,
    SpeechRequest,
    TranscriptionRequest,
    TurnAudio,
    TurnChunk,
    TurnMessage,
    TurnRefused,
    TurnRequest,
    TurnUsage,
)
from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.omni import Omni

A_440 = TurnAudio(tone(1200), 24_000)


def asked(*content: str | TurnAudio, speak: bool = False) -> AnswerRequest:
    message = TurnMessage(role="user", content=content)
    if speak:
        return AnswerRequest(messages=(message,), modalities=frozenset({"text", "audio"}))
    return AnswerRequest(messages=(message,))


def run(omni: AsyncOmni, request: TurnRequest) -> list[TurnChunk]:
    async def chunks() -> list[TurnChunk]:
        async with asyncio.timeout(60):
            return [chunk async for chunk in omni.generate(request)]

    return asyncio.run(chunks())


def text(chunks: list[TurnChunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def test_text_is_answered_with_text(turn_omni: AsyncOmni) -> None:
    chunks = run(turn_omni, asked("good morning"))

    assert text(chunks) == "You said good morning"
    assert len(chunks) > 1
    assert [chunk.finished for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].finish_reason == "stop"
    assert chunks[-1].usage == TurnUsage(input_tokens=2, output_tokens=4)
    assert not any(chunk.pcm for chunk in chunks)


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (TurnMessage(role="user", content=cast(Any, "good morning")), "content"),
        (TurnMessage(role=cast(Any, "bot"), content=("good morning",)), "role"),
        (TurnMessage(role="user", content=(TurnAudio(cast(Any, "abc"), 24_000),)), "pcm"),
        (TurnMessage(role="user", content=(TurnAudio(cast(Any, object()), 24_000),)), "object"),
    ],
)
def test_parts_of_wrong_types_are_refused_by_their_place(
    turn_omni: AsyncOmni, wrong: TurnMessage, where: str
) -> None:
    with pytest.raises(TurnRefused, match=rf"AnswerRequest: .*{where}") as refused:
        run(turn_omni, AnswerRequest(messages=(wrong,)))
    assert refused.value.code == "invalid_value"
    assert text(run(turn_omni, asked("good morning"))) == "You said good morning"


def test_a_voice_of_one_speed_refuses_another(turn_omni: AsyncOmni) -> None:
    with pytest.raises(TurnRefused, match="one speed") as refused:
        run(turn_omni, SpeechRequest(text="good morning", speed=2.0))
    assert (refused.value.code, refused.value.param) == ("unsupported", "speed")


def test_sound_is_answered_with_sound(turn_omni: AsyncOmni) -> None:
    chunks = run(turn_omni, asked(A_440, speak=True))

    assert text(chunks) == "You said tone 440 Hz 1.2 s"
    assert {chunk.sample_rate_hz for chunk in chunks} == {24_000}
    assert sum(len(chunk.pcm) for chunk in chunks) == 2 * 24 * 1200


def test_several_sounds_keep_their_places(turn_omni: AsyncOmni) -> None:
    chunks = run(turn_omni, asked("one", A_440, "two", TurnAudio(tone(640, 200), 24_000)))

    assert text(chunks) == "You said one tone 440 Hz 1.2 s two tone 200 Hz 0.6 s"


def test_a_text_is_spoken_and_a_recording_is_read(turn_omni: AsyncOmni) -> None:
    assert sum(len(chunk.pcm) for chunk in run(turn_omni, SpeechRequest(text="a b c"))) > 0
    assert text(run(turn_omni, TranscriptionRequest(audio=A_440))) == "tone 440 Hz 1.2 s"


def test_pcm_that_ends_inside_a_sample_is_the_callers_fault(turn_omni: AsyncOmni) -> None:
    with pytest.raises(ValueError, match="sample"):
        run(turn_omni, TranscriptionRequest(audio=TurnAudio(b"\0\0\0", 16_000)))
    assert asyncio.run(turn_omni.active_turn_count()) == 0


def test_omni_does_the_same_without_a_loop(echo: PipelineConfig) -> None:
    with Omni(pipeline=echo) as omni:
        assert omni.turn_features.supports_transcription
        assert text(list(omni.generate(asked("good morning")))) == "You said good morning"
        chunks = omni.generate(asked("good morning"))
        next(chunks)
        chunks.close()
        assert text(list(omni.generate(TranscriptionRequest(audio=A_440)))) == "tone 440 Hz 1.2 s"


@pytest.mark.parametrize("door", [AsyncOmni, Omni])
def test_a_deployment_with_sessions_is_for_another_door(door: type[AsyncOmni | Omni]) -> None:
    with pytest.raises(ConfigError, match="not deployed for turn requests"):
        door("omniduplex/echo")
