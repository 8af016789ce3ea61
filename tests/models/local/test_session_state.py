from collections.abc import Sequence

import msgspec
import pytest

from omniduplex.engine.duplex.contracts import Abort, DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.model_events import (
    FunctionCall,
    Listen,
    Projected,
    ResponseAudio,
    ResponseEnded,
    ResponseFailed,
    ResponseMetrics,
    ResponseText,
    UserSpeechProgress,
    UserSpeechResumed,
    UserSpeechStarted,
    UserTranscript,
    UserTranscriptFailed,
    UserTurnDraft,
    UserTurnEnded,
    UserTurnUnheard,
)
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.local.answer_path import LISTEN_STAGE, SPEAK_STAGE
from omniduplex.models.local.messages import (
    AnswerEnded,
    AnswerText,
    ClearInput,
    CommitHeard,
    CommitInput,
    CommitUnheard,
    ConfigureEar,
    EarSettings,
    FromListen,
    Heard,
    HowToSpeak,
    KeptListening,
    Report,
    SpeechBegan,
    SpeechGrew,
    SpeechWentOn,
    StartAnswer,
    ToolCalled,
    Transcribe,
    Transcribed,
    TurnDrafted,
    TurnEnded,
    TurnUnheard,
    WatchSpeech,
    decode_how_to_speak,
    decode_to_listen,
    encode,
)
from omniduplex.models.local.session_state import LocalSessionState, ear_settings
from omniduplex.protocol.duplex import DuplexError, DuplexSessionConfig, TurnDetection
from omniduplex.stages.messages import StageInput, StageOutput

OPENED = DuplexFence("s", 4, 0)
LATER = DuplexFence("s", 5, 1)
EAR = OPENED.request_id("stage0")
WRITING = LATER.request_id("stage0-key")
SPEAKING = LATER.request_id("stage1-key")
CONFIG = DuplexSessionConfig(model="omniduplex/local", auto_response=True)
PROMPT = ResponsePrompt(instructions=None, messages=(PromptMessage(role="user", text="Hello?"),))
BEGINNING = ResponsePrompt(instructions=CONFIG.instructions, messages=())
TEXT_PROMPT = ResponsePrompt(instructions=None, messages=(), speak=False)


@pytest.fixture
def state() -> LocalSessionState:
    state = LocalSessionState()
    state.plan_open(OPENED, CONFIG)
    return state


def submitted(works: Sequence[StageWork | Projected]) -> tuple[int, StageInput]:
    (work,) = works
    assert isinstance(work, Submit)
    return work.stage_id, work.message


def hear(
    state: LocalSessionState,
    heard: Heard,
    metrics: dict[str, float] | None = None,
    generation: int = 0,
) -> list[Projected]:
    output = StageOutput(EAR, 4, data=encode(Report(generation, heard)), metrics=metrics or {})
    return list(state.project(LISTEN_STAGE, output))


def write(
    state: LocalSessionState,
    told: FromListen,
    text: str = "",
    metrics: dict[str, float] | None = None,
) -> list[Projected]:
    output = StageOutput(WRITING, 5, text=text, data=encode(told), metrics=metrics or {})
    return list(state.project(LISTEN_STAGE, output))


def speak(state: LocalSessionState, output: StageOutput) -> list[Projected]:
    return list(state.project(SPEAK_STAGE, output))


def test_the_ear_opens_once_and_outlives_its_epoch(state: LocalSessionState) -> None:
    works = LocalSessionState().plan_open(OPENED, CONFIG)
    stage, opened = submitted(works)
    assert (stage, opened.request_id, opened.epoch) == (LISTEN_STAGE, EAR, 4)
    assert decode_to_listen(opened.data) == ConfigureEar(ear_settings(CONFIG), BEGINNING)

    _, heard = submitted(state.plan_append(LATER, b"\1\0", force_listen=True))
    assert heard == StageInput(EAR, 4, b"\1\0")


def test_new_instructions_are_read_before_there_is_a_question(state: LocalSessionState) -> None:
    tool = {"type": "function", "name": "f"}
    changed = DuplexSessionConfig(model="m", instructions="Be kind.", tools=(tool,))
    prompts = []
    for config in (changed, changed, CONFIG):
        _, message = submitted(state.plan_update(LATER, config))
        order = decode_to_listen(message.data)
        assert isinstance(order, ConfigureEar)
        prompts.append(order.prompt)
    assert prompts == [
        ResponsePrompt(instructions="Be kind.", messages=(), tools=(tool,)),
        None,
        BEGINNING,
    ]


def test_orders_go_to_the_ear(state: LocalSessionState) -> None:
    manual = DuplexSessionConfig(model="m")
    plans = {
        ConfigureEar(EarSettings(False, hold_ms=1600, complete_hold_ms=300)): state.plan_update(
            LATER, manual
        ),
        CommitInput("item_1", 1): state.plan_commit(LATER, "item_1"),
        ClearInput(2): state.plan_clear(LATER),
        WatchSpeech(True): state.plan_overlap(LATER, active=True),
    }
    for order, works in plans.items():
        stage, message = submitted(works)
        assert (stage, message.request_id, message.final) == (LISTEN_STAGE, EAR, False)
        assert decode_to_listen(message.data) == order


@pytest.mark.parametrize(
    ("told", "event"),
    [
        (SpeechBegan(120), UserSpeechStarted(120)),
        (TurnDrafted("so far"), UserTurnDraft("so far")),
        (SpeechWentOn(), UserSpeechResumed()),
        (SpeechGrew(96, -20.5, "so"), UserSpeechProgress(96, -20.5, "so")),
        (TurnEnded(900, "words"), UserTurnEnded(900, "words")),
        (TurnEnded(900, ""), UserTurnEnded(900, "")),
        (CommitHeard("item_1", "words", 2.5), UserTranscript("item_1", "words", 2.5)),
        (KeptListening(), Listen()),
    ],
)
def test_what_the_ear_hears_becomes_an_event_of_the_user(
    state: LocalSessionState, told: Heard, event: Projected
) -> None:
    state.plan_response(LATER, "other", PROMPT)
    state.plan_cancel(LATER, "other")
    assert hear(state, told) == [event]


def test_nobody_says_it_listens_while_it_answers(state: LocalSessionState) -> None:
    state.plan_response(LATER, "key", PROMPT)
    assert hear(state, KeptListening()) == []
    assert hear(state, SpeechBegan(0)) == [UserSpeechStarted(0)]


def test_an_answer_goes_through_both_stages(state: LocalSessionState) -> None:
    stage, asked = submitted(state.plan_response(LATER, "key", PROMPT))
    assert (stage, asked.request_id, asked.epoch, asked.final) == (0, WRITING, 5, True)
    assert decode_to_listen(asked.data) == StartAnswer(PROMPT)

    clause = submitted(write(state, AnswerText(), "Hello there, "))
    assert clause == (SPEAK_STAGE, StageInput(SPEAKING, 5, text="Hello there, "))
    end = submitted(write(state, AnswerEnded("stop", 11, 4)))
    assert end == (SPEAK_STAGE, StageInput(SPEAKING, 5, final=True))

    audio = StageOutput(SPEAKING, 5, b"\1\0", 22050, "Hello there, ")
    assert speak(state, audio) == [ResponseAudio("key", b"\1\0", 22050, "Hello there, ")]
    (ended,) = speak(state, StageOutput(SPEAKING, 5, finished=True))
    assert isinstance(ended, ResponseEnded)
    assert (ended.key, ended.reason) == ("key", "stop")
    assert ended.usage is not None
    assert (ended.usage.input_tokens, ended.usage.output_tokens, ended.usage.total_tokens) == (
        11,
        4,
        15,
    )
    assert speak(state, audio) == []
    assert hear(state, KeptListening()) == [Listen()]


def test_an_answer_is_spoken_as_fast_as_its_prompt_says(state: LocalSessionState) -> None:
    state.plan_response(LATER, "key", msgspec.structs.replace(PROMPT, speed=1.5))
    for told, text in ((AnswerText(), "Hello there, "), (AnswerEnded("stop"), "")):
        _, clause = submitted(write(state, told, text))
        assert decode_how_to_speak(clause.data) == HowToSpeak(1.5)


def test_an_answer_in_text_alone_leaves_the_voice_out(state: LocalSessionState) -> None:
    state.plan_response(LATER, "key", TEXT_PROMPT)
    assert write(state, AnswerText(), "Hel") == [ResponseText("key", "Hel")]
    assert write(state, AnswerEnded("length")) == [ResponseEnded("key", "length")]


def test_a_tool_call_needs_no_voice(state: LocalSessionState) -> None:
    state.plan_response(LATER, "key", PROMPT)
    assert write(state, ToolCalled("call_1", "set_timer", "{}")) == [
        FunctionCall("key", "call_1", "set_timer", "{}")
    ]
    assert write(state, AnswerEnded("stop")) == [ResponseEnded("key", "stop")]


def test_words_without_a_sound_are_not_lost(state: LocalSessionState) -> None:
    state.plan_response(LATER, "key", PROMPT)
    write(state, AnswerText(), "☀️")
    write(state, AnswerEnded("stop"))
    assert speak(state, StageOutput(SPEAKING, 5, b"", 22050, "☀️", finished=True)) == [
        ResponseAudio("key", b"", 22050, "☀️"),
        ResponseEnded("key", "stop"),
    ]


def test_a_cancel_stops_both_stages_and_nothing_else(state: LocalSessionState) -> None:
    state.plan_response(LATER, "key", PROMPT)
    newer = DuplexFence("s", 6, 1)
    assert state.plan_cancel(newer, "key") == (Abort((WRITING, SPEAKING)),)
    assert state.plan_cancel(newer, "key") == ()

    assert write(state, AnswerText(), "stale") == []
    assert speak(state, StageOutput(SPEAKING, 5, b"\1\0", 22050, "stale")) == []
    assert hear(state, TurnEnded(900, "still heard")) == [UserTurnEnded(900, "still heard")]


@pytest.mark.parametrize(
    ("stage", "request_id"), [(LISTEN_STAGE, WRITING), (SPEAK_STAGE, SPEAKING)]
)
def test_an_error_of_a_stage_fails_the_answer(
    state: LocalSessionState, stage: int, request_id: str
) -> None:
    state.plan_response(LATER, "key", PROMPT)
    assert list(state.project(stage, StageOutput(request_id, 5, error="broken"))) == [
        ResponseFailed("key", "broken"),
        Abort((WRITING, SPEAKING)),
    ]
    assert state.plan_cancel(LATER, "key") == ()


def test_close_aborts_the_ear_and_every_answer(state: LocalSessionState) -> None:
    state.plan_response(LATER, "key", PROMPT)
    assert state.plan_close() == (Abort((EAR, WRITING, SPEAKING)),)
    assert state.plan_close() == ()
    assert state.plan_append(LATER, b"\0\0") == ()
    assert write(state, AnswerText(), "stale") == []


def test_a_turns_measures_go_with_the_answer_to_it(state: LocalSessionState) -> None:
    hear(state, TurnEnded(900, "words"), {"hold_s": 0.3})
    state.plan_response(LATER, "key", PROMPT)

    events = write(state, AnswerText(), "Hello. ", {"llm_first_token_s": 0.2})
    assert events[:2] == [
        ResponseMetrics("key", 0, {"hold_s": 0.3}),
        ResponseMetrics("key", 0, {"llm_first_token_s": 0.2}),
    ]
    audio = StageOutput(SPEAKING, 5, b"\1\0", 22050, metrics={"tts_first_s": 0.1})
    assert speak(state, audio)[0] == ResponseMetrics("key", 1, {"tts_first_s": 0.1})


def test_an_answer_begun_on_a_draft_gets_the_turns_measures_too(state: LocalSessionState) -> None:
    hear(state, SpeechBegan(0))
    hear(state, TurnDrafted("words"), {"asr_s": 0.2})
    state.plan_response(LATER, "key", PROMPT)
    assert len(write(state, AnswerText(), "Hello. ")) == 1

    hear(state, TurnEnded(900, "words"), {"hold_s": 0.3})
    assert write(state, AnswerText(), "There. ")[0] == ResponseMetrics("key", 0, {"hold_s": 0.3})


def test_measures_of_a_turn_that_nobody_answered_are_not_given_to_a_later_one(
    state: LocalSessionState,
) -> None:
    hear(state, TurnEnded(900, "words"), {"hold_s": 0.3})
    hear(state, SpeechBegan(1000))
    hear(state, TurnEnded(1900, ""), {"hold_s": 0.4})
    state.plan_response(LATER, "key", PROMPT)
    assert len(write(state, AnswerText(), "Hello. ")) == 1


@pytest.mark.parametrize(
    ("eagerness", "complete_ms", "hold_ms"),
    [("high", 200, 800), ("medium", 300, 1600), ("auto", 300, 1600), ("low", 500, 4000)],
)
def test_semantic_vad_holds_by_eagerness(eagerness: str, complete_ms: int, hold_ms: int) -> None:
    wire = {"type": "semantic_vad", "eagerness": eagerness}
    detection = msgspec.convert(wire, TurnDetection)
    config = DuplexSessionConfig(model="m", turn_detection=detection)
    settings = ear_settings(config)
    assert (settings.complete_hold_ms, settings.hold_ms) == (complete_ms, hold_ms)
    assert settings.finds_turns


def test_server_vad_keeps_exactly_its_silence() -> None:
    detection = TurnDetection(
        threshold=0.6, prefix_padding_ms=100, silence_duration_ms=700, min_speech_duration_ms=64
    )
    config = DuplexSessionConfig(model="m", turn_detection=detection)
    assert ear_settings(config) == EarSettings(True, 0.6, 100, 64, 700, None)


@pytest.mark.parametrize("auto_response", [True, False])
def test_without_turn_detection_the_model_decides_if_it_may_answer(auto_response: bool) -> None:
    settings = ear_settings(DuplexSessionConfig(model="m", auto_response=auto_response))
    assert settings.finds_turns is auto_response
    assert (settings.complete_hold_ms, settings.hold_ms) == (300, 1600)


# Audio beside the stream


def test_audio_of_an_item_is_a_request_of_its_own(state: LocalSessionState) -> None:
    pcm = bytes(32_000)
    stage_id, first = submitted(state.plan_recognise(OPENED, "item_1", 0, pcm))
    _, second = submitted(state.plan_recognise(OPENED, "item_1", 3, bytes(16_000)))

    assert (stage_id, first.pcm, first.final) == (LISTEN_STAGE, pcm, True)
    assert decode_to_listen(first.data) == Transcribe()
    assert len({first.request_id, second.request_id, EAR}) == 3

    data = encode(Transcribed("What time is it?"))
    output = StageOutput(second.request_id, 4, finished=True, data=data)
    assert state.project(LISTEN_STAGE, output) == (
        UserTranscript("item_1", "What time is it?", 0.5, 3),
    )
    assert state.project(LISTEN_STAGE, output) == ()
    (abort,) = state.plan_close()
    assert isinstance(abort, Abort)
    assert set(abort.request_ids) == {EAR, first.request_id}


def test_audio_of_an_item_that_is_not_recognised_is_told(state: LocalSessionState) -> None:
    _, message = submitted(state.plan_recognise(OPENED, "item_1", 1, bytes(3200)))
    output = StageOutput(message.request_id, 4, error="no recogniser")
    assert state.project(LISTEN_STAGE, output) == (
        UserTranscriptFailed("item_1", "no recogniser", 1),
    )


@pytest.mark.parametrize(
    ("heard", "event"),
    [
        (TurnUnheard(900, "broken"), UserTurnUnheard(900, "broken")),
        (CommitUnheard("item_1", "broken"), UserTranscriptFailed("item_1", "broken")),
    ],
)
def test_what_the_ear_could_not_recognise_is_told(
    state: LocalSessionState, heard: Heard, event: Projected
) -> None:
    assert hear(state, heard) == [event]


def test_a_session_ends_with_its_ear(state: LocalSessionState) -> None:
    with pytest.raises(DuplexError, match="too much audio at once"):
        state.project(LISTEN_STAGE, StageOutput(EAR, 4, error="too much audio at once"))
