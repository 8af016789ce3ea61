"""What echo says: answers, tool calls, and sessions side by side."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from tests.models.echo.driver import (
    COMMITS_ONLY,
    CONFIG,
    PACED,
    EchoDriver,
    prompt,
    silence,
    tone,
    user,
)

from omniduplex.engine.duplex.model_events import (
    FunctionCall,
    Listen,
    ResponseAudio,
    ResponseEnded,
    ResponseMetrics,
    ResponseText,
    UserSpeechStarted,
    UserTranscript,
)
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.stage import EchoStage
from omniduplex.protocol.duplex import Usage
from omniduplex.stages.messages import StageInput, StageOutput

GET_TIME = {"type": "function", "name": "get_time", "parameters": {}}


def pitch_hz(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(float)
    return float(np.abs(np.fft.rfft(samples, 24000)).argmax())


def test_an_answer_lasts_as_long_as_the_turn_and_says_its_words() -> None:
    echo = EchoDriver()
    echo.append(tone(800) + silence(240))
    echo.events.clear()
    echo.respond("r1", prompt(user("tone 440 Hz 0.8 s")))

    audio = echo.of(ResponseAudio)
    assert [event.text for event in audio] == [
        "You", " said", " tone", " 440", " Hz", " 0.8", " s", "", "", "",
    ]  # fmt: skip
    assert echo.audio_ms("r1") == 800
    assert {len(event.pcm) for event in audio} == {80 * 48}
    assert pitch_hz(b"".join(event.pcm for event in audio)) == 440 + 20 * 5
    assert echo.events[10:] == [
        ResponseMetrics("r1", 0, {"units": 10.0}),
        ResponseEnded("r1", "stop", Usage.of_text(5, 7)),
        Listen(),
    ]


def test_the_tone_of_an_answer_has_no_jump_between_units() -> None:
    echo = EchoDriver()
    echo.respond("r1", prompt(user("one two three")))
    samples = np.frombuffer(b"".join(e.pcm for e in echo.of(ResponseAudio)), "<i2").astype(int)

    steepest = 0.3 * 32768 * 2 * np.pi * 500 / 24000
    assert np.abs(np.diff(samples)).max() <= steepest + 1


@pytest.mark.parametrize(("words", "ms"), [(1, 400), (3, 1200), (40, 10_000)])
def test_a_text_turn_is_answered_without_any_audio(words: int, ms: int) -> None:
    echo = EchoDriver()
    text = " ".join(f"w{index}" for index in range(words))
    echo.respond("r1", prompt(user(text)))

    assert echo.audio_ms("r1") == ms
    assert echo.words("r1") == f"You said {text}"


def test_words_that_outnumber_the_units_are_said_in_the_last_one() -> None:
    echo = EchoDriver()
    echo.append(tone(80) + silence(240))
    echo.respond("r1", prompt(user("tone 440 Hz 0.1 s")))

    assert [event.text for event in echo.of(ResponseAudio)] == [
        "You",
        " said",
        " tone 440 Hz 0.1 s",
    ]


def test_an_answer_asked_for_before_the_words_are_known_is_about_what_was_heard() -> None:
    echo = EchoDriver(config=COMMITS_ONLY)
    echo.held = True
    echo.append(tone(800))
    echo.commit("item_1")
    echo.respond("r1", prompt(user("")))
    echo.deliver()

    assert echo.words("r1") == "You said tone 440 Hz 0.8 s"
    assert echo.audio_ms("r1") == 800


def test_text_alone_is_words_without_audio() -> None:
    echo = EchoDriver()
    echo.respond("r1", prompt(user("hello there"), speak=False))

    assert echo.of(ResponseAudio) == []
    assert echo.of(ResponseText) == [
        ResponseText("r1", text) for text in ("You", " said", " hello", " there")
    ]
    assert echo.of(ResponseEnded)[0].reason == "stop"


@pytest.mark.parametrize("speak", [True, False])
def test_the_token_limit_cuts_an_answer(speak: bool) -> None:
    echo = EchoDriver()
    ask = prompt(user("one two three four"), speak=speak)
    echo.respond("r1", msgspec.structs.replace(ask, max_tokens=3))

    assert echo.words("r1") == "You said one"
    assert echo.audio_ms("r1") == (240 if speak else 0)
    assert echo.of(ResponseEnded) == [ResponseEnded("r1", "length", Usage.of_text(4, 3))]


def tool_prompt(*messages: PromptMessage, tool_choice: str = "auto") -> ResponsePrompt:
    return msgspec.structs.replace(prompt(*messages), tools=(GET_TIME,), tool_choice=tool_choice)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("call get_time", "{}"), ("please call get_time in Rome", '{"text":"in Rome"}')],
)
def test_a_tool_named_by_the_user_is_called(text: str, arguments: str) -> None:
    echo = EchoDriver()
    echo.respond("r1", tool_prompt(user(text)))

    assert echo.of(FunctionCall) == [FunctionCall("r1", "call_1", "get_time", arguments)]
    assert echo.of(ResponseAudio) == []
    assert [event.key for event in echo.of(ResponseEnded)] == ["r1"]


def test_every_tool_that_is_named_is_called() -> None:
    echo = EchoDriver()
    tools = (GET_TIME, {"type": "function", "name": "set_alarm"})
    ask = prompt(user("call get_time in Rome, call set_alarm at ten call get_time"))
    echo.respond("r1", msgspec.structs.replace(ask, tools=tools))

    assert echo.of(FunctionCall) == [
        FunctionCall("r1", "call_1", "get_time", '{"text":"in Rome,"}'),
        FunctionCall("r1", "call_2", "set_alarm", '{"text":"at ten"}'),
        FunctionCall("r1", "call_3", "get_time", "{}"),
    ]
    assert len(echo.of(ResponseEnded)) == 1


@pytest.mark.parametrize(
    ("choice", "text", "call"),
    [
        ("required", "What time is it?", ("get_time", '{"text":"What time is it?"}')),
        ("required", "call get_time in Rome", ("get_time", '{"text":"in Rome"}')),
        (
            {"type": "function", "name": "set_alarm"},
            "call get_time",
            ("set_alarm", '{"text":"call get_time"}'),
        ),
    ],
)
def test_a_tool_that_has_to_be_called_is(choice: Any, text: str, call: tuple[str, str]) -> None:
    echo = EchoDriver()
    tools = (GET_TIME, {"type": "function", "name": "set_alarm"})
    ask = msgspec.structs.replace(prompt(user(text)), tools=tools, tool_choice=choice)
    echo.respond("r1", ask)

    assert [(one.name, one.arguments) for one in echo.of(FunctionCall)] == [call]


@pytest.mark.parametrize("text", ["get_time", "call get_times", "recall get_time"])
def test_no_tool_is_called_that_was_not_named(text: str) -> None:
    echo = EchoDriver()
    echo.respond("r1", tool_prompt(user(text)))

    assert echo.of(FunctionCall) == []
    assert echo.words("r1") == f"You said {text}"


def test_no_tool_is_called_when_the_client_forbids_it() -> None:
    echo = EchoDriver()
    echo.respond("r1", tool_prompt(user("call get_time"), tool_choice="none"))

    assert echo.of(FunctionCall) == []


def test_the_output_of_a_tool_is_spoken_and_the_next_call_has_a_new_id() -> None:
    echo = EchoDriver()
    ask = user("call get_time")
    echo.respond("r1", tool_prompt(ask))
    done = PromptMessage(role="tool", text="ten o'clock", tool_call_id="call_1")
    echo.respond("r2", tool_prompt(ask, done))
    echo.respond("r3", tool_prompt(ask, done, ask))

    assert echo.words("r2") == "Tool said ten o'clock"
    assert [event.call_id for event in echo.of(FunctionCall)] == ["call_1", "call_2"]


def test_audio_beside_the_stream_is_described_and_leaves_the_open_turn_alone() -> None:
    echo = EchoDriver(config=COMMITS_ONLY)
    echo.append(tone(400))
    echo.hear_item(silence(40) + tone(800, hz=220), "item_9", 2)
    echo.append(tone(400))
    echo.hear_item(silence(400), "item_10")
    echo.commit()

    assert echo.of(UserTranscript) == [
        UserTranscript("item_9", "tone 220 Hz 0.8 s", 0.84, 2),
        UserTranscript("item_10", "", 0.0),
        UserTranscript("item_1", "tone 440 Hz 0.8 s", 0.8),
    ]


def test_sessions_of_one_batch_hear_only_themselves() -> None:
    loud, quiet = EchoDriver(session_id="loud"), EchoDriver(session_id="quiet")
    loud.held = True
    work = (
        *quiet.state.plan_open(quiet.fence, CONFIG),
        *quiet.state.plan_append(quiet.fence, silence(480)),
        *loud.state.plan_append(loud.fence, tone(400)),
    )
    loud.do(work)
    quiet.outputs += loud.outputs
    loud.deliver()
    quiet.deliver()

    assert loud.events == [Listen(), UserSpeechStarted(0)]
    assert quiet.events == [Listen()]


def test_work_for_a_session_that_is_gone_ends_in_an_error() -> None:
    outputs: list[StageOutput] = []
    stage = EchoStage(EchoOptions(), outputs.append)
    stage.load()
    stage.step([StageInput("r", epoch=3, pcm=silence(80))])

    assert [(output.request_id, output.epoch, bool(output.error)) for output in outputs] == [
        ("r", 3, True)
    ]


def test_a_closed_session_says_nothing_more() -> None:
    echo = EchoDriver(PACED)
    echo.append(silence(80))
    echo.respond("r1", prompt(user("one")))
    echo.held = True
    echo.append(tone(80))
    echo.close()
    echo.deliver()

    assert echo.events == [Listen()]
    echo.append(tone(80))
    assert [bool(output.error) for output in echo.outputs] == [True]
