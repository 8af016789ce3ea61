from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.echo.driver import CONFIG, EchoDriver, prompt, silence, tone, user

from omniduplex.engine.duplex.model_events import (
    FunctionCall,
    Listen,
    ResponseAudio,
    ResponseEnded,
    ResponseMetrics,
    ResponseText,
    Speak,
    UserSpeechStarted,
    UserTranscript,
    UserTurnEnded,
)
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.stage import EchoStage
from omniduplex.protocol.duplex import TurnDetection, Usage
from omniduplex.stages.messages import StageInput, StageOutput

PACED = EchoOptions(paced=True)
SELF_START = EchoOptions(self_start=True)
SELF_START_PACED = EchoOptions(self_start=True, paced=True)
COMMITS_ONLY = msgspec.structs.replace(CONFIG, auto_response=False)
GET_TIME = {"type": "function", "name": "get_time", "parameters": {}}


def pitch_hz(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(float)
    return float(np.abs(np.fft.rfft(samples, 24000)).argmax())


def test_a_tone_between_silences_is_a_turn() -> None:
    echo = EchoDriver()
    echo.append(silence(160) + tone(1200) + silence(240))

    assert echo.events == [
        Listen(),
        UserSpeechStarted(160),
        UserTurnEnded(1600, "tone 440 Hz 1.2 s"),
    ]


@pytest.mark.parametrize("hz", [120, 300, 440, 1000, 3130, 7900])
def test_the_transcript_names_the_pitch(hz: int) -> None:
    echo = EchoDriver()
    echo.append(tone(800, hz) + silence(240))

    assert echo.of(UserTurnEnded)[0].transcript == f"tone {hz} Hz 0.8 s"


def test_a_constant_offset_has_no_pitch() -> None:
    offset = np.frombuffer(tone(800, 300), "<i2") // 4 + 8000
    echo = EchoDriver()
    echo.append(offset.astype("<i2").tobytes() + silence(240))

    assert echo.of(UserTurnEnded)[0].transcript == "tone 300 Hz 0.8 s"


def test_what_is_quieter_than_speech_is_silence() -> None:
    quiet = (np.frombuffer(tone(400), "<i2") // 64).astype("<i2").tobytes()
    echo = EchoDriver()
    echo.append(quiet)

    assert echo.events == [Listen()]


def test_a_short_pause_belongs_to_the_turn() -> None:
    echo = EchoDriver()
    echo.append(tone(400) + silence(160) + tone(400) + silence(240))

    assert echo.of(UserTurnEnded) == [UserTurnEnded(1200, "tone 440 Hz 1.0 s")]


@pytest.mark.parametrize(("silence_ms", "end_ms"), [(0, 480), (80, 480), (200, 640), (500, 960)])
def test_the_client_sets_the_silence_that_ends_a_turn(silence_ms: int, end_ms: int) -> None:
    detection = TurnDetection(silence_duration_ms=silence_ms)
    echo = EchoDriver(config=msgspec.structs.replace(CONFIG, turn_detection=detection))
    echo.append(tone(400) + silence(1000))

    assert [event.audio_end_ms for event in echo.of(UserTurnEnded)] == [end_ms]


def test_an_update_changes_the_silence_in_the_middle_of_a_turn() -> None:
    echo = EchoDriver()
    echo.append(tone(400))
    detection = TurnDetection(silence_duration_ms=400)
    echo.update(msgspec.structs.replace(CONFIG, turn_detection=detection))
    echo.append(silence(320))
    assert echo.of(UserTurnEnded) == []

    echo.append(silence(80))
    assert [event.audio_end_ms for event in echo.of(UserTurnEnded)] == [800]


def test_without_turn_decisions_only_a_commit_ends_a_turn() -> None:
    echo = EchoDriver(config=COMMITS_ONLY)
    echo.append(tone(400) + silence(2000))
    assert echo.events == [Listen()]

    echo.commit("item_7")
    assert echo.events[1:] == [UserTranscript("item_7", "tone 440 Hz 0.4 s", 0.4)]


def test_a_commit_of_silence_has_no_words() -> None:
    echo = EchoDriver(config=COMMITS_ONLY)
    echo.append(silence(400))
    echo.commit("item_7")

    assert echo.of(UserTranscript) == [UserTranscript("item_7", "", 0.0)]


def test_a_commit_takes_audio_short_of_a_unit_and_the_clock_stays_exact() -> None:
    echo = EchoDriver()
    echo.append(tone(100))
    echo.commit("item_1")
    echo.append(silence(80) + tone(80))
    echo.commit("item_2")

    assert echo.of(UserTranscript) == [
        UserTranscript("item_1", "tone 440 Hz 0.1 s", 0.1),
        UserTranscript("item_2", "tone 440 Hz 0.1 s", 0.08),
    ]
    assert echo.of(UserSpeechStarted)[1] == UserSpeechStarted(180)


def test_a_clear_forgets_the_utterance_and_keeps_the_clock() -> None:
    echo = EchoDriver()
    echo.append(tone(420))
    echo.clear()
    echo.append(silence(400) + tone(80))

    assert echo.of(UserTurnEnded) == []
    assert echo.of(UserSpeechStarted) == [UserSpeechStarted(0), UserSpeechStarted(820)]


def test_what_the_ear_says_of_a_cleared_utterance_is_stale() -> None:
    echo = EchoDriver()
    echo.held = True
    echo.append(tone(400) + silence(240))
    echo.clear()
    echo.deliver()

    assert echo.events == [Listen()]


def test_forced_listening_starts_no_turn_but_hears_the_end_of_one() -> None:
    echo = EchoDriver()
    echo.append(tone(400), force_listen=True)
    assert echo.events == [Listen()]

    echo.append(tone(400))
    echo.append(silence(240), force_listen=True)
    assert echo.events[1:] == [
        UserSpeechStarted(400),
        UserTurnEnded(1040, "tone 440 Hz 0.4 s"),
    ]


def test_a_unit_is_forced_when_any_of_it_is() -> None:
    echo = EchoDriver()
    echo.append(tone(40), force_listen=True)
    echo.append(tone(120))

    assert echo.of(UserSpeechStarted) == [UserSpeechStarted(80)]


@settings(deadline=None, max_examples=40)
@given(
    cuts=st.lists(st.integers(0, 2800 * 32 // 2), max_size=12),
    options=st.sampled_from([EchoOptions(), PACED, SELF_START, SELF_START_PACED]),
)
def test_any_slicing_of_the_audio_gives_the_same_events(
    cuts: list[int], options: EchoOptions
) -> None:
    audio = silence(90) + tone(800, 600) + silence(500) + tone(410) + silence(1000)
    whole, sliced = EchoDriver(options), EchoDriver(options)
    whole.append(audio)
    edges = [0, *sorted(2 * cut for cut in cuts), len(audio)]
    for start, end in pairwise(edges):
        sliced.append(audio[start:end])

    assert sliced.events == whole.events
    assert len(whole.of(UserTurnEnded)) == 2


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


def test_a_paced_answer_speaks_one_unit_for_each_unit_it_hears() -> None:
    echo = EchoDriver(PACED)
    echo.append(silence(80))
    echo.respond("r1", prompt(user("one two")))
    assert echo.audio_ms("r1") == 0

    heard = []
    for _ in range(10):
        echo.append(silence(80))
        heard.append(echo.audio_ms("r1"))
    assert heard == [80 * unit for unit in range(1, 11)]
    assert [event.reason for event in echo.of(ResponseEnded)] == ["stop"]
    echo.append(silence(800))
    assert echo.audio_ms("r1") == 800


def test_talking_over_a_paced_answer_is_heard_and_cancelling_it_silences_it() -> None:
    echo = EchoDriver(PACED)
    echo.respond("r1", prompt(user("one two three")))
    echo.append(silence(400) + tone(80))
    assert echo.of(UserSpeechStarted) == [UserSpeechStarted(400)]
    assert echo.audio_ms("r1") == 480

    echo.cancel("r1")
    echo.append(tone(320) + silence(240))
    assert echo.audio_ms("r1") == 480
    assert echo.of(ResponseEnded) == []
    assert echo.of(UserTurnEnded) == [UserTurnEnded(1040, "tone 440 Hz 0.4 s")]


def test_audio_in_flight_of_a_cancelled_answer_is_stale() -> None:
    echo = EchoDriver()
    echo.held = True
    echo.respond("r1", prompt(user("one two three")))
    echo.cancel("r1")
    echo.respond("r2", prompt(user("four")))
    echo.deliver()

    assert {event.key for event in echo.of(ResponseAudio)} == {"r2"}
    assert [event.key for event in echo.of(ResponseEnded)] == ["r2"]


def test_the_stage_is_silent_about_an_answer_once_it_is_aborted() -> None:
    echo = EchoDriver(PACED)
    echo.respond("r1", prompt(user("one two three")))
    echo.append(silence(160))
    echo.held = True
    echo.cancel("r1")
    echo.append(silence(800))

    assert echo.outputs == []


@pytest.mark.parametrize(("options", "ends"), [(EchoOptions(), 1), (SELF_START, 0)])
def test_the_end_of_an_answer_ends_its_own_request_only(options: EchoOptions, ends: int) -> None:
    echo = EchoDriver(options)
    echo.held = True
    echo.append(tone(400) + silence(240))
    if not options.self_start:
        echo.respond("r1", prompt(user("one")))
    finished = [output.request_id for output in echo.outputs if output.finished]
    listening = echo.outputs[0].request_id

    assert len(finished) == ends
    assert listening not in finished


def test_listening_is_announced_once_per_change() -> None:
    echo = EchoDriver(PACED)
    echo.append(silence(400))
    echo.respond("r1", prompt(user("one")))
    echo.append(silence(800))

    assert [type(event) for event in echo.events if isinstance(event, Listen | ResponseEnded)] == [
        Listen,
        ResponseEnded,
        Listen,
    ]


def test_a_self_starter_answers_the_turn_it_heard() -> None:
    echo = EchoDriver(SELF_START)
    echo.append(tone(800) + silence(240))

    assert echo.events[2:4] == [UserTurnEnded(1040, "tone 440 Hz 0.8 s"), Speak("native-1")]
    assert echo.words("native-1") == "You said tone 440 Hz 0.8 s"
    assert echo.audio_ms("native-1") == 800
    assert isinstance(echo.events[-2], ResponseEnded)
    assert echo.events[-1] == Listen()


def test_a_self_starter_gives_each_answer_a_key_of_its_own() -> None:
    echo = EchoDriver(SELF_START)
    echo.append((tone(400) + silence(240)) * 2)

    assert echo.of(Speak) == [Speak("native-1"), Speak("native-2")]
    assert [event.key for event in echo.of(ResponseEnded)] == ["native-1", "native-2"]


def test_a_self_starter_can_be_talked_over_and_goes_on_listening() -> None:
    echo = EchoDriver(SELF_START_PACED)
    echo.append(tone(1600) + silence(240) + silence(160) + tone(80))
    assert echo.audio_ms("native-1") == 240

    echo.cancel("native-1")
    echo.append(tone(320) + silence(240))
    assert echo.audio_ms("native-1") == 240
    assert echo.of(Speak) == [Speak("native-1"), Speak("native-2")]
    assert echo.of(ResponseEnded) == []


def test_a_self_starter_answers_one_turn_after_the_other() -> None:
    echo = EchoDriver(SELF_START_PACED)
    echo.append(tone(1200) + silence(240) + tone(400) + silence(1000))

    order = [event for event in echo.events if isinstance(event, Speak | ResponseEnded)]
    assert [(type(event), event.key) for event in order] == [
        (Speak, "native-1"),
        (ResponseEnded, "native-1"),
        (Speak, "native-2"),
    ]
    assert echo.audio_ms("native-1") == 1200


def test_a_self_starter_waits_while_it_must_listen() -> None:
    echo = EchoDriver(SELF_START)
    echo.append(tone(400))
    echo.append(silence(320), force_listen=True)
    assert len(echo.of(UserTurnEnded)) == 1
    assert echo.of(Speak) == []

    echo.append(silence(80))
    assert echo.of(Speak) == [Speak("native-1")]


def test_a_self_starter_answers_a_committed_turn() -> None:
    echo = EchoDriver(SELF_START)
    echo.append(tone(400))
    echo.commit("item_1")

    assert echo.words("native-1") == "You said tone 440 Hz 0.4 s"


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
