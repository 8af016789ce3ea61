"""What comes of one thing that happens, in which order and number: wire contract, section 7."""

from __future__ import annotations

import pytest
from tests.contract.caller import LOOK_UP, Caller, Event, one, types

pytestmark = pytest.mark.e2e

OPENING = {
    "duplex": ["session.created", "session.updated"],
    "openai": ["session.created"],
    "beta": ["session.created", "conversation.created"],
}
ITEM = {
    "duplex": [
        "conversation.item.added",
        "conversation.item.created",
        "conversation.item.done",
    ],
    "openai": ["conversation.item.added", "conversation.item.done"],
    "beta": ["conversation.item.created"],
}
COMMIT = {
    "duplex": [
        "conversation.item.added",
        "conversation.item.created",
        "input_audio_buffer.committed",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.completed",
    ],
    "openai": [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
    ],
    "beta": [
        "input_audio_buffer.committed",
        "conversation.item.created",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
    ],
}
ANSWER = {
    "duplex": [
        "response.created",
        "conversation.item.added",
        "conversation.item.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.speak",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ],
    "openai": [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "output_audio_buffer.started",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ],
    "beta": [
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
        "output_audio_buffer.started",
        "response.audio.delta",
        "response.audio_transcript.delta",
        "response.audio.done",
        "response.audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
        "rate_limits.updated",
    ],
}
CALL = {
    "duplex": [
        "response.created",
        "conversation.item.added",
        "conversation.item.created",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ],
    "openai": [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ],
    "beta": [
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.done",
        "rate_limits.updated",
    ],
}


def test_a_session_opens(any_dialect: Caller) -> None:
    opening = OPENING[any_dialect.dialect]
    assert types(any_dialect.seen)[: len(opening)] == opening


def test_an_item_is_put(any_dialect: Caller) -> None:
    assert types(any_dialect.writes("Hi", id="hi")) == ITEM[any_dialect.dialect]


def test_a_turn_is_committed(any_dialect: Caller) -> None:
    any_dialect.says()
    any_dialect.send("input_audio_buffer.commit")
    events = any_dialect.until("conversation.item.input_audio_transcription.completed")
    if any_dialect.dialect == "duplex":
        events = [event for event in events if event["type"] != "response.listen"]
    assert types(events) == COMMIT[any_dialect.dialect]


def test_a_question_is_answered(any_dialect: Caller) -> None:
    any_dialect.writes("one")
    shown = types(any_dialect.asks())
    first_deltas = list(dict.fromkeys(shown))
    assert first_deltas == list(dict.fromkeys(ANSWER[any_dialect.dialect]))

    audio = [name for name in shown if name.endswith("audio.delta")]
    words = [name for name in shown if name.endswith("transcript.delta")]
    assert len(audio) == len(words) > 1
    for name in ANSWER[any_dialect.dialect]:
        if not name.endswith(".delta"):
            assert shown.count(name) == ANSWER[any_dialect.dialect].count(name)


def test_a_tool_is_called(any_dialect: Caller) -> None:
    any_dialect.writes("call look_up noon")
    events = any_dialect.asks(tools=[LOOK_UP])
    assert types(events) == CALL[any_dialect.dialect]
    item = one(events, "response.output_item.added")["item"]
    assert (item["status"], item["arguments"], item["name"]) == ("in_progress", "", "look_up")
    assert "content" not in item
    done = one(events, "response.function_call_arguments.done")
    assert (done["name"], done["call_id"]) == ("look_up", item["call_id"])
    assert done["arguments"] == '{"text":"noon"}'
    finished = one(events, "response.output_item.done")["item"]
    assert (finished["status"], finished["arguments"]) == ("completed", '{"text":"noon"}')


def test_an_answer_is_written(any_dialect: Caller) -> None:
    any_dialect.writes("one")
    names = {"duplex": "output_modalities", "openai": "output_modalities", "beta": "modalities"}
    events = any_dialect.asks(**{names[any_dialect.dialect]: ["text"]})
    kind = "text" if any_dialect.dialect == "beta" else "output_text"
    shown = types(events)
    at = shown.index("response.content_part.added")
    end = shown.index("response.output_item.done")
    assert list(dict.fromkeys(shown[at:end])) == [
        "response.content_part.added",
        f"response.{kind}.delta",
        f"response.{kind}.done",
        "response.content_part.done",
    ]
    assert one(events, f"response.{kind}.done")["text"] == "You said one"
    assert not any("audio" in name for name in shown)
    (item,) = one(events, "response.done")["response"]["output"]
    assert item["content"] == [{"type": kind, "text": "You said one"}]


def test_an_empty_turn_is_listened_on(duplex: Caller) -> None:
    duplex.says()
    duplex.send("input_audio_buffer.commit", is_speech=False)
    events = duplex.until("conversation.item.done") + duplex.until("response.listen")
    assert types(events)[-5:] == [
        "conversation.item.added",
        "conversation.item.created",
        "input_audio_buffer.committed",
        "conversation.item.done",
        "response.listen",
    ]
    facts = one(events, "input_audio_buffer.committed")["event"]
    assert (facts["empty"], facts["is_speech"], facts["no_response"]) == (True, False, True)
    assert events[-1]["response"]["metadata"]["reason"] == "silence_or_noise"


def of_silence(events: list[Event]) -> list[Event]:
    listens = [event for event in events if event["type"] == "response.listen"]
    return [one for one in listens if one["response"]["metadata"]["reason"] == "silence_or_noise"]


def test_silence_while_nothing_goes_on_is_told_once(duplex: Caller) -> None:
    for _ in range(5):
        duplex.says(0.1, hz=0)
    (listen,) = of_silence(duplex.until_now())
    assert "response_id" not in listen
    assert (listen["response"]["status"], "id" in listen["response"]) == ("listening", False)
    duplex.says(0.1, hz=0)
    assert of_silence(duplex.until_now()) == []


def test_a_stock_clients_turn_is_heard_and_answered(openai: Caller) -> None:
    """Interop, MUST 22."""
    openai.configure(audio={"input": {"turn_detection": {"type": "server_vad"}}})
    openai.says()
    openai.says(2.0, hz=0)
    shown = types(openai.until("rate_limits.updated"))
    assert shown[:7] == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
        "conversation.item.done",
    ]
    assert list(dict.fromkeys(shown[7:])) == list(dict.fromkeys(ANSWER["openai"]))


def test_audio_in_an_item_is_transcribed_and_not_answered(any_dialect: Caller) -> None:
    sound = any_dialect.sound(1.0)
    item = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": sound}]}
    events = any_dialect.puts({**item, "id": "said"})
    if not types(events)[-1].endswith("completed"):
        events += any_dialect.until("conversation.item.input_audio_transcription.completed")
    completed = one(events, "conversation.item.input_audio_transcription.completed")
    assert (completed["item_id"], completed["transcript"]) == ("said", "tone 300 Hz 1.0 s")
    assert completed["usage"]["type"] == "duration"
    committed = [name for name in types(events) if name == "input_audio_buffer.committed"]
    assert len(committed) == (1 if any_dialect.dialect == "duplex" else 0)
    any_dialect.send("conversation.item.retrieve", item_id="said")
    (part,) = any_dialect.until("conversation.item.retrieved")[-1]["item"]["content"]
    assert part["transcript"] == "tone 300 Hz 1.0 s"
    assert "audio" not in part


def test_the_numbers_have_no_gap_and_the_ids_are_new(any_dialect: Caller) -> None:
    any_dialect.writes("one")
    any_dialect.asks()
    numbers = [event["server_event_seq"] for event in any_dialect.seen]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({event["event_id"] for event in any_dialect.seen}) == len(numbers)
