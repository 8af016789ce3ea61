"""Half-duplex Realtime conversations: what a client says, shows and asks of the turn engine."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter
from tests.entrypoints.turn.half_duplex import HalfDuplex
from tests.entrypoints.turn.sounds import tone

from omniduplex.audio.wav import read_wav_file
from omniduplex.engine.turns import TurnAudio, TurnChunk, TurnMessage, TurnToolCall, TurnUsage
from omniduplex.entrypoints.openai.turn_realtime.effects import Ask, Hear
from omniduplex.entrypoints.openai.turn_realtime.items import MAX_INPUT_BYTES
from omniduplex.protocol.duplex import (
    AppendAudio,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    Commit,
    ContentPart,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Dialect,
    DuplexCommand,
    Heartbeat,
    InputCommit,
    ItemInput,
    ResponseOptions,
    RetrieveItem,
    TruncateItem,
)

OFFICIAL: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
RATE = 24_000
DONE = TurnChunk(finish_reason="stop", usage=TurnUsage(input_tokens=3, output_tokens=2))


def sound(ms: int) -> bytes:
    return bytes(ms * RATE // 1000 * 2)


def spoken(text: str, ms: int = 100, rate: int = RATE) -> TurnChunk:
    return TurnChunk(text=text, pcm=bytes(ms * rate // 1000 * 2), sample_rate_hz=rate)


@pytest.fixture
def talk() -> HalfDuplex:
    talk = HalfDuplex()
    talk.shown()
    return talk


# --- the session -------------------------------------------------------------------------------


def test_nobody_but_the_client_ends_a_turn() -> None:
    created = HalfDuplex().one("session.created")["session"]
    assert created["audio"]["input"]["turn_detection"] is None
    beta = HalfDuplex(dialect=Dialect.BETA)
    assert beta.types() == ["session.created", "conversation.created"]


def test_an_update_is_shown_as_it_stands(talk: HalfDuplex) -> None:
    talk.send_json("session.update", session={"type": "realtime", "instructions": "Be brief."})
    assert talk.one("session.updated")["session"]["instructions"] == "Be brief."
    talk.writes("hello")
    talk.asks()
    assert talk.request().messages[0] == TurnMessage(role="system", content=("Be brief.",))


def test_turn_detection_cannot_be_switched_on(talk: HalfDuplex) -> None:
    session = {"type": "realtime", "audio": {"input": {"turn_detection": {"type": "server_vad"}}}}
    talk.send_json("session.update", session=session, event_id="e1")
    error = talk.error()
    assert (error["code"], error["event_id"]) == ("unsupported_turn_detection", "e1")
    assert error["param"] == "session.audio.input.turn_detection"


def test_the_format_of_buffered_audio_stays(talk: HalfDuplex) -> None:
    ulaw = {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcmu"}}}}
    talk.send(AppendAudio(audio=sound(100)))
    talk.send_json("session.update", session=ulaw)
    assert talk.error()["code"] == "unsupported_audio_format"
    talk.send(ClearInput())
    talk.send_json("session.update", session=ulaw)
    assert talk.types() == ["input_audio_buffer.cleared", "session.updated"]


# --- a written turn ----------------------------------------------------------------------------


def test_a_written_turn_is_answered_in_the_apis_order(talk: HalfDuplex) -> None:
    talk.writes("hello")
    assert talk.types() == ["conversation.item.added", "conversation.item.done"]
    talk.asks(output_modalities=("text",))
    talk.answers(TurnChunk(text="good "), TurnChunk(text="day"), DONE)

    events = talk.shown()
    for event in events:
        OFFICIAL.validate_python(event)
    assert [event["type"] for event in events] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ]
    response = events[-2]["response"]
    assert (response["status"], response["usage"]["total_tokens"]) == ("completed", 5)
    assert response["output"][0]["content"] == [{"type": "output_text", "text": "good day"}]


def test_an_answer_is_part_of_the_next_question(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_modalities=("text",))
    talk.answers(TurnChunk(text="good day"), DONE)
    talk.writes("again")
    talk.asks(output_modalities=("text",))
    assert talk.request().messages == (
        TurnMessage(role="user", content=("hello",)),
        TurnMessage(role="assistant", content=("good day",)),
        TurnMessage(role="user", content=("again",)),
    )


def test_a_response_outside_the_conversation_leaves_no_trace(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_modalities=("text",), conversation="none", input=())
    assert talk.request().messages == ()
    talk.answers(TurnChunk(text="aside"), DONE)
    assert "conversation.item.added" not in talk.types()[2:]
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)


def test_an_answer_that_was_cut_by_its_limit_is_incomplete(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(max_output_tokens=1, output_modalities=("text",))
    assert talk.request().max_tokens == 1
    talk.answers(TurnChunk(text="good", finish_reason="length"))
    response = talk.one("response.done")["response"]
    assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"


# --- a spoken turn -----------------------------------------------------------------------------


def test_committed_audio_is_heard_and_then_answered(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(300)))
    talk.send(AppendAudio(audio=sound(200)))
    talk.send(Commit())
    talk.send(CreateResponse())
    assert talk.types() == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    assert not talk.all(Ask)
    assert talk.last(Hear).sound.decoded() == TurnAudio(sound(500), RATE)

    talk.hears("good morning")
    delta, completed = talk.shown()
    assert delta["delta"] == completed["transcript"] == "good morning"
    assert completed["usage"] == {"type": "duration", "seconds": 0.5}
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)


def test_sound_says_how_to_play_it(talk: HalfDuplex) -> None:
    talk.writes("hello")
    assert talk.asks().wanted.modalities == ("audio",)
    assert talk.request().speak
    talk.shown()
    talk.answers(spoken("good ", 100), spoken("day", 55), DONE)

    events = talk.shown()
    deltas = [event for event in events if event["type"] == "response.output_audio.delta"]
    assert [delta["audio_duration_ms"] for delta in deltas] == [100, 155]
    for delta in deltas:
        OFFICIAL.validate_python(delta)
        assert (delta["format"], delta["sample_rate_hz"], delta["channels"]) == ("pcm16", RATE, 1)
    words = [event for event in events if event["type"].endswith("transcript.delta")]
    assert [event["delta"] for event in words] == ["good ", "day"]
    assert sum(len(base64.b64decode(delta["delta"])) for delta in deltas) == len(sound(155))


def test_sound_comes_in_the_sessions_format(talk: HalfDuplex) -> None:
    ulaw = {"type": "realtime", "audio": {"output": {"format": {"type": "audio/pcmu"}}}}
    talk.send_json("session.update", session=ulaw)
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.answers(spoken("good day", 200, 16_000), DONE)
    deltas = [event for event in talk.shown() if event["type"] == "response.output_audio.delta"]
    assert {(delta["format"], delta["sample_rate_hz"]) for delta in deltas} == {("g711_ulaw", 8000)}
    assert sum(len(base64.b64decode(delta["delta"])) for delta in deltas) == 1600
    assert deltas[-1]["audio_duration_ms"] == 200


def test_in_wav_each_delta_is_a_whole_file(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_audio_format="wav")
    talk.shown()
    talk.answers(spoken("good ", 100), spoken("day", 55), DONE)
    deltas = [event for event in talk.shown() if event["type"] == "response.output_audio.delta"]
    files = [read_wav_file(io.BytesIO(base64.b64decode(delta["delta"]))) for delta in deltas]
    assert files == [(sound(100), RATE), (sound(55), RATE)]
    assert {(delta["format"], delta["sample_rate_hz"]) for delta in deltas} == {("wav", RATE)}
    assert [delta["audio_duration_ms"] for delta in deltas] == [100, 155]


def test_the_beta_has_its_own_names() -> None:
    talk = HalfDuplex(dialect=Dialect.BETA)
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.answers(spoken("good day"), DONE)
    delta = talk.one("response.audio.delta")
    assert (delta["sample_rate_hz"], delta["audio_duration_ms"]) == (RATE, 100)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ((TurnChunk(text="x", pcm=sound(100)),), "without its sample rate"),
        ((spoken("x"), spoken("y", rate=16_000)), "changed from 24000 to 16000 Hz"),
        ((spoken("x"), TurnChunk(pcm=b"odd", sample_rate_hz=RATE)), ""),
    ],
)
def test_sound_that_cannot_be_played_fails_the_response(
    talk: HalfDuplex, chunks: tuple[TurnChunk, ...], message: str
) -> None:
    talk.writes("hello")
    ask = talk.asks()
    talk.answers(*chunks, DONE)

    events = talk.shown()
    (error,) = (event["error"] for event in events if event["type"] == "error")
    assert error["code"] == "response_error"
    assert message in error["message"]
    (done,) = (event["response"] for event in events if event["type"] == "response.done")
    assert done["status_details"] == {
        "type": "failed",
        "error": {"type": "server_error", "code": "response_error"},
    }
    assert talk.stopped == [ask.response_id]


def test_what_came_of_an_answer_that_fails_stays_as_the_client_knows_it(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.answers(spoken("good "))
    talk.breaks("the voice broke")

    events = talk.shown()
    assert "conversation.item.deleted" not in [event["type"] for event in events]
    (item,) = events[-2]["response"]["output"]
    assert item["status"] == "incomplete"
    assert item["content"] == [{"type": "output_audio", "transcript": "good "}]
    talk.send(RetrieveItem(item_id=item["id"]))
    assert talk.one("conversation.item.retrieved")["item"] == item
    talk.asks()
    assert talk.request().messages[1] == TurnMessage(role="assistant", content=("good ",))


def test_of_an_answer_that_fails_before_its_first_word_nothing_is_there(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.breaks("the voice broke")
    assert talk.one("response.done")["response"]["output"] == []
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)


def test_a_model_that_recognises_nothing_hears_the_sound_itself() -> None:
    talk = HalfDuplex(transcribes=False)
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    talk.asks()
    assert not talk.all(Hear)
    heard = (TurnAudio(sound(100), RATE),)
    assert talk.request().messages == (TurnMessage(role="user", content=heard),)


def test_words_that_will_never_be_known_fail_what_waits_for_them(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    talk.send(CreateResponse())
    talk.shown()
    talk.hears_nothing("the ear broke")

    failed, error, done, _ = talk.shown()
    assert failed["error"]["message"] == "the ear broke"
    assert error["error"]["code"] == "transcription_failed"
    assert done["response"]["status"] == "failed"
    talk.writes("hello")
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)


def test_what_is_said_after_the_question_is_no_part_of_it(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    asked = talk.last(Hear).part
    talk.send(CreateResponse())
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    later = talk.last(Hear).part
    talk.writes("later, too")

    talk.hears("good morning", asked)
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)
    talk.hears_nothing("it is loud", later)
    assert talk.types()[-1] == "conversation.item.input_audio_transcription.failed"
    assert talk.conversation.answering


def test_what_cannot_be_heard_fails_only_what_asked_about_it(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    asked = talk.last(Hear).part
    talk.send(CreateResponse())
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    talk.hears_nothing("it is loud")
    assert talk.conversation.answering
    talk.hears("good morning", asked)
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)


def test_an_input_of_its_own_waits_for_nothing_else(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    said = talk.last(Hear).part[0]
    written = ItemInput(id=said, content=(ContentPart(type="input_text", text="aside"),))
    talk.asks(conversation="none", input=(written,))
    assert talk.request().messages == (TurnMessage(role="user", content=("aside",)),)
    talk.answers(DONE)

    named = ItemInput(type="item_reference", id=said)
    talk.send(CreateResponse(response=ResponseOptions(conversation="none", input=(named,))))
    assert len(talk.all(Ask)) == 1
    talk.hears("good morning")
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)


def test_sound_inside_an_item_is_heard_too(talk: HalfDuplex) -> None:
    audio = base64.b64encode(sound(100)).decode()
    content = [{"type": "input_text", "text": "Listen:"}, {"type": "input_audio", "audio": audio}]
    item = {"type": "message", "role": "user", "content": content}
    talk.send_json("conversation.item.create", item=item)
    talk.hears("a bell")
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("Listen: a bell",)),)


# --- tools -------------------------------------------------------------------------------------


def test_a_tool_is_called_and_its_output_is_read(talk: HalfDuplex) -> None:
    tool = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
    talk.writes("look it up")
    talk.asks(tools=(tool,), tool_choice="required")
    assert (talk.request().tools, talk.request().tool_choice) == ((tool,), "required")
    call = TurnToolCall(call_id="c1", name="look_up", arguments='{"a": 1}')
    talk.answers(TurnChunk(tool_calls=(call,)), TurnChunk(finish_reason="tool_calls"))

    events = talk.shown()
    for event in events:
        OFFICIAL.validate_python(event)
    assert [event["type"] for event in events[2:]] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ]
    output = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    talk.send_json("conversation.item.create", item=output)
    talk.asks()
    assert talk.request().messages[1:] == (
        TurnMessage(role="assistant", tool_calls=(call,)),
        TurnMessage(role="tool", content=("42",), tool_call_id="c1"),
    )


@pytest.mark.parametrize(("name", "call_id"), [("", "c1"), ("look_up", "")])
def test_a_call_that_nobody_can_answer_is_none(talk: HalfDuplex, name: str, call_id: str) -> None:
    talk.writes("look it up")
    talk.asks(output_modalities=("text",))
    call = TurnToolCall(call_id=call_id, name=name, arguments="{}")
    talk.answers(TurnChunk(text="well", tool_calls=(call,)), DONE)
    (item,) = talk.one("response.done")["response"]["output"]
    assert item["type"] == "message"
    talk.asks()
    assert [message.tool_calls for message in talk.request().messages] == [(), ()]


# --- stopping ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "reason"),
    [(CancelResponse(), "client_cancelled"), (ClearOutputAudio(), "turn_detected")],
)
def test_an_answer_can_be_stopped_and_what_came_of_it_stays(
    talk: HalfDuplex, command: DuplexCommand, reason: str
) -> None:
    talk.writes("hello")
    ask = talk.asks()
    talk.answers(spoken("good "))
    talk.send(command)
    talk.answers(spoken("day"), DONE)

    response = talk.one("response.done")["response"]
    assert response["status_details"] == {"type": "cancelled", "reason": reason}
    assert talk.stopped == [ask.response_id]
    talk.asks()
    assert talk.request().messages[1].content == ("good ",)


def test_a_cancel_that_comes_too_late_says_so(talk: HalfDuplex) -> None:
    talk.send(CancelResponse(event_id="e1"))
    assert talk.error()["code"] == "response_cancel_not_active"
    talk.send(ClearOutputAudio())
    assert talk.types() == ["output_audio_buffer.cleared"]


def test_of_an_answer_that_was_cut_what_was_heard_counts(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.answers(spoken("one two ", 1000), spoken("three four", 1000), DONE)
    item_id = talk.one("response.done")["response"]["output"][0]["id"]
    talk.send(TruncateItem(item_id=item_id, audio_end_ms=1000))
    assert talk.one("conversation.item.truncated")["audio_end_ms"] == 1000

    talk.send(RetrieveItem(item_id=item_id))
    item = talk.one("conversation.item.retrieved")["item"]
    assert item["content"] == [{"type": "output_audio", "transcript": "one two"}]
    talk.asks()
    assert talk.request().messages[1].content == ("one two",)


def test_an_item_that_is_taken_out_is_waited_for_no_more(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    item_id = talk.last(Hear).part[0]
    talk.writes("hello")
    talk.send(CreateResponse())
    talk.shown()
    talk.send(DeleteItem(item_id=item_id))
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)
    talk.hears("too late")
    assert talk.types() == ["conversation.item.deleted"]


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (Heartbeat(event_id="e1"), "unsupported"),
        (InputCommit(event_id="e1"), "unsupported"),
        (AppendAudio(audio=b"12", force_listen=True, event_id="e1"), "unsupported"),
        (Commit(response_create=True, event_id="e1"), "unsupported"),
        (Commit(event_id="e1"), "input_audio_buffer_commit_empty"),
        (AppendAudio(audio=bytes(MAX_INPUT_BYTES + 2), event_id="e1"), "input_backpressure"),
        (CreateResponse(event_id="e1"), "response_create_without_input"),
        (RetrieveItem(item_id="no", event_id="e1"), "item_retrieve_invalid_item_id"),
        (RetrieveItem(item_id="", event_id="e1"), "missing_item_id"),
        (DeleteItem(item_id="no", event_id="e1"), "item_not_found"),
        (TruncateItem(item_id="no", audio_end_ms=1, event_id="e1"), "item_not_found"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    talk: HalfDuplex, command: DuplexCommand, code: str
) -> None:
    talk.send(command)
    error = talk.error()
    assert (error["code"], error["event_id"]) == (code, "e1")


@pytest.mark.parametrize("interruptible", [True, False])
def test_no_answer_is_more_or_less_interruptible_than_another(
    talk: HalfDuplex, interruptible: bool
) -> None:
    talk.writes("hello")
    talk.shown()
    talk.send(CreateResponse(response=ResponseOptions(interruptible=interruptible)))
    error = talk.error()
    assert (error["code"], error["param"]) == ("unsupported", "response.interruptible")
    assert talk.conversation.answering is None


def test_speech_over_an_answer_is_kept_and_ends_nothing(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_modalities=("text",))
    talk.answers(TurnChunk(text="good "))
    talk.send(AppendAudio(audio=tone(400)))
    talk.send(Commit())
    talk.answers(TurnChunk(text="day"), DONE)
    response = talk.one("response.done")["response"]
    assert response["status"] == "completed"
    assert response["output"][0]["content"] == [{"type": "output_text", "text": "good day"}]
    assert not talk.stopped


def test_one_answer_at_a_time(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.send(CreateResponse())
    assert talk.error()["code"] == "conversation_already_has_active_response"


def test_half_a_sample_is_no_audio(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=b"odd"))
    talk.send(Commit())
    assert talk.error()["code"] == "bad_audio"
    talk.send(AppendAudio(audio=tone(100)))
    talk.send(Commit())
    assert talk.types()[0] == "input_audio_buffer.committed"


def test_only_what_was_spoken_can_be_cut(talk: HalfDuplex) -> None:
    talk.send(CreateItem(item=ItemInput(id="mine")))
    talk.shown()
    talk.send(TruncateItem(item_id="mine", audio_end_ms=1))
    assert talk.error()["param"] == "item_id"
    talk.send(CreateItem(item=ItemInput(id="mine")))
    assert talk.error()["code"] == "item_create_duplicate_item_id"
