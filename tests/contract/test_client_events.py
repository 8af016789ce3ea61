"""Every client event has its good answer."""

from __future__ import annotations

import json
import re

import pytest
from tests.contract.caller import LOOK_UP, Caller, one, types

pytestmark = pytest.mark.e2e


def test_an_update_is_a_merge_and_shows_the_whole_session(openai: Caller) -> None:
    """Interop, MUST 13."""
    openai.configure(instructions="Be brief.", tools=[LOOK_UP])
    session = openai.configure(tracing="auto")
    assert (session["instructions"], session["tools"]) == ("Be brief.", [LOOK_UP])
    assert session["tracing"] == "auto"
    assert openai.configure(instructions=None)["instructions"] == ""
    openai.send("session.update", session={"instructions": "x", "max_output_tokens": 0})
    openai.until("error")
    assert openai.configure()["instructions"] == ""


def test_keys_that_nobody_knows_are_neither_refused_nor_shown(any_dialect: Caller) -> None:
    unknown = {"shade": "vermilion"}
    audio = {"input": unknown, "output": {"format": {"type": "audio/pcm", **unknown}}, **unknown}
    session = any_dialect.configure(instructions="Be brief.", audio=audio, **unknown)
    assert session["instructions"] == "Be brief."
    assert not {"shade", "vermilion"} & set(re.findall(r"\w+", json.dumps(session)))


def test_the_session_is_the_ga_object(openai: Caller) -> None:
    """Interop, MUST 11 and 12."""
    session = openai.configure()
    assert (session["type"], session["object"]) == ("realtime", "realtime.session")
    assert session["output_modalities"] == ["audio"]
    pcm = {"type": "audio/pcm", "rate": 24000}
    assert session["audio"]["input"]["format"] == session["audio"]["output"]["format"] == pcm


def test_turn_detection_comes_back_filled_in(openai: Caller) -> None:
    """Interop, MUST 14."""
    for sent in ({"type": "semantic_vad", "eagerness": "low"}, {"type": "server_vad"}):
        shown = openai.configure(audio={"input": {"turn_detection": sent}})
        detection = shown["audio"]["input"]["turn_detection"]
        assert sent.items() <= detection.items()
        assert (detection["create_response"], detection["interrupt_response"]) == (True, True)
    for off in (None, False):
        shown = openai.configure(audio={"input": {"turn_detection": off}})
        assert shown["audio"]["input"]["turn_detection"] is None


def test_what_a_stock_client_sets_comes_back(openai: Caller) -> None:
    """Interop, MUST 15."""
    truncation = {"type": "retention_ratio", "retention_ratio": 0.8}
    include = ["item.input_audio_transcription.logprobs"]
    session = openai.configure(
        truncation=truncation,
        include=include,
        prompt={"id": "pmpt_1"},
        reasoning={"effort": "low"},
        parallel_tool_calls=False,
        max_output_tokens="inf",
        tool_choice={"type": "function", "name": "look_up"},
        output_modalities=["text"],
        audio={
            "input": {
                "transcription": {"model": "gpt-realtime-whisper"},
                "noise_reduction": {"type": "far_field"},
            },
            "output": {"voice": "marin", "speed": 1.2},
        },
    )
    assert (session["truncation"], session["include"]) == (truncation, include)
    assert (session["prompt"], session["reasoning"]) == ({"id": "pmpt_1"}, {"effort": "low"})
    assert session["parallel_tool_calls"] is False
    assert session["max_output_tokens"] == "inf"
    assert session["tool_choice"] == {"type": "function", "name": "look_up"}
    assert session["output_modalities"] == ["text"]
    assert session["audio"]["input"]["transcription"] == {"model": "gpt-realtime-whisper"}
    assert session["audio"]["input"]["noise_reduction"] == {"type": "far_field"}
    assert (session["audio"]["output"]["voice"], session["audio"]["output"]["speed"]) == (
        "marin",
        1.2,
    )


def test_an_extension_that_is_granted_is_echoed(openai: Caller) -> None:
    session = openai.configure(extensions=["telepathy", "duplex"])
    assert session["extensions"] == ["duplex"]
    assert "capabilities" in session
    assert types(openai.answer_to("session.heartbeat")) == ["session.heartbeat_ack"]


def test_an_update_that_is_refused_grants_nothing(openai: Caller) -> None:
    openai.send("session.update", session={"extensions": ["duplex"], "temperature": -1})
    openai.until("error")
    assert openai.answer_to("session.heartbeat") == []


def test_the_flat_session_of_the_beta(beta: Caller) -> None:
    """Interop, MUST 16."""
    session = beta.configure(
        modalities=["text", "audio"],
        voice="verse",
        input_audio_format="g711_ulaw",
        max_response_output_tokens=77,
        input_audio_transcription={"model": "whisper-1"},
    )
    assert session["modalities"] == ["text", "audio"]
    assert (session["voice"], session["input_audio_format"]) == ("verse", "g711_ulaw")
    assert session["max_response_output_tokens"] == 77
    assert session["input_audio_transcription"] == {"model": "whisper-1"}


def test_heartbeats_and_acknowledgements(duplex: Caller) -> None:
    (ack,) = duplex.answer_to("session.heartbeat")
    assert ack["type"] == "session.heartbeat_ack"
    assert duplex.answer_to("session.event_ack", server_event_seq=ack["server_event_seq"]) == []


def test_a_turn_signal_is_told(duplex: Caller) -> None:
    (event,) = duplex.answer_to("turn.signal", event="user_started")
    assert (event["type"], event["turn_state"]) == ("turn.event", "user_speaking")


def test_an_item_is_retrieved_and_deleted(any_dialect: Caller) -> None:
    any_dialect.writes("Hi", id="hi")
    (shown,) = any_dialect.answer_to("conversation.item.retrieve", item_id="hi")
    assert shown["item"]["content"] == [{"type": "input_text", "text": "Hi"}]
    (deleted,) = any_dialect.answer_to("conversation.item.delete", item_id="hi")
    assert (deleted["type"], deleted["item_id"]) == ("conversation.item.deleted", "hi")


def test_items_go_in_front_or_behind(any_dialect: Caller) -> None:
    """Interop, MUST 17."""
    any_dialect.writes("b", id="b")
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
    front = any_dialect.puts({**item, "id": "a"}, previous_item_id="root")
    behind = any_dialect.puts({**item, "id": "c"}, previous_item_id="b")
    assert front[-1]["previous_item_id"] is None
    assert behind[-1]["previous_item_id"] == "b"


def test_an_answer_is_truncated(any_dialect: Caller) -> None:
    any_dialect.writes("one two three")
    item = any_dialect.asks()[-2]["response"]["output"][0]["id"]
    events = any_dialect.answer_to(
        "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=200
    )
    truncated = one(events, "conversation.item.truncated")
    assert (truncated["item_id"], truncated["audio_end_ms"]) == (item, 200)
    (shown,) = any_dialect.answer_to("conversation.item.retrieve", item_id=item)
    assert shown["item"]["content"][0]["transcript"].startswith("You said")
    assert not shown["item"]["content"][0]["transcript"].endswith("three")


def test_playback_is_acknowledged(duplex: Caller) -> None:
    duplex.writes("one")
    response = duplex.asks()[-2]["response_id"]
    (ack,) = duplex.answer_to("playback.ack", response_id=response, played_ms=100)
    assert ack["type"] == "playback.acknowledged"
    assert ack["event"]["played_ms"] == 100
    assert ack["event"]["history_committed"] is True


def test_a_session_is_closed(duplex: Caller) -> None:
    duplex.send("session.close", reason="done")
    events, code, reason = duplex.talk.ends()
    assert (events[-1]["type"], events[-1]["reason"]) == ("session.closed", "done")
    assert (code, reason) == (1000, "done")


def test_metadata_and_usage_come_back(any_dialect: Caller) -> None:
    """Interop, MUST 23 and 25."""
    any_dialect.writes("one two")
    events = any_dialect.asks(metadata={"client_event_id": "e7"})
    for name in ("response.created", "response.done"):
        metadata = one(events, name)["response"]["metadata"]
        assert metadata["client_event_id"] == "e7"
    usage = one(events, "response.done")["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (2, 4, 6)
    assert usage["input_token_details"]["text_tokens"] == 2
    assert usage["output_token_details"] == {"text_tokens": 4, "audio_tokens": 0}


def test_an_answer_out_of_band_leaves_no_trace(any_dialect: Caller) -> None:
    any_dialect.writes("one", id="one")
    content = [{"type": "input_text", "text": "two"}]
    items = [
        {"type": "item_reference", "id": "one"},
        {"type": "message", "role": "user", "content": content},
    ]
    events = any_dialect.asks(conversation="none", input=items)
    assert not any(name.startswith("conversation.item") for name in types(events))
    response = one(events, "response.done")["response"]
    (part,) = response["output"][0]["content"]
    assert part["transcript"] == "You said two"
    if any_dialect.dialect != "duplex":
        assert response["conversation_id"] is None
    after = any_dialect.asks()
    assert after[-2]["response"]["output"][0]["content"][0]["transcript"] == "You said one"


def test_the_limits_are_told(openai: Caller, duplex: Caller) -> None:
    openai.writes("one")
    (limit,) = openai.asks()[-1]["rate_limits"]
    assert limit == {"name": "requests", "limit": 4, "remaining": 4, "reset_seconds": 0.0}
    duplex.writes("one")
    assert duplex.asks()[-1]["rate_limits"] == []


def test_playback_ends_are_told_to_a_stock_client(openai: Caller) -> None:
    openai.writes("one")
    response = openai.asks()[-2]["response"]["id"]
    stopped = openai.until("output_audio_buffer.stopped")[-1]
    assert stopped["response_id"] == response


def test_a_silent_user_is_spoken_to_again(openai: Caller) -> None:
    detection = {"type": "server_vad", "idle_timeout_ms": 50}
    openai.configure(audio={"input": {"turn_detection": detection}})
    openai.writes("one")
    openai.asks()
    events = openai.until("input_audio_buffer.timeout_triggered")
    item = events[-1]["item_id"]
    events = openai.until("response.created")
    assert one(events, "input_audio_buffer.committed")["item_id"] == item
    (part,) = one(events, "conversation.item.added")["item"]["content"]
    assert part == {"type": "input_audio", "transcript": ""}
