"""Public bug reports of such servers, each as a sequence over a real socket, by its number."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator

import pytest
from tests.contract.caller import LOOK_UP, SET_ALARM, Caller, call, one, types
from tests.entrypoints.talk import Talk

pytestmark = pytest.mark.e2e


def test_b03_a_cancel_of_nothing_harms_nobody(any_dialect: Caller) -> None:
    error = any_dialect.refusal("response.cancel")
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith("Cancellation failed")
    any_dialect.still_answers()


@pytest.mark.parametrize("dialect", ["duplex", "openai", "beta"])
def test_b11_two_requests_have_one_answer_at_a_time(paced_base: str, dialect: str) -> None:
    with call(paced_base, dialect) as caller:
        caller.writes("one")
        caller.send("response.create")
        caller.send("response.create", event_id="e1")
        events = caller.until("error")
        caller.says(2.0, hz=0)  # the answer goes on while it hears something
        events += caller.until("rate_limits.updated")
    assert types(events).count("response.created") == 1
    error = one(events, "error")["error"]
    assert error["event_id"] == "e1"
    assert error["code"] in ("response_already_active", "conversation_already_has_active_response")


def test_b16_a_truncation_past_the_end_is_no_disaster(any_dialect: Caller) -> None:
    any_dialect.writes("one two three four")
    item = any_dialect.asks()[-2]["response"]["output"][0]["id"]
    ends: list[int] = []
    for audio_end_ms in (2485, 2400, 1e12, 0):
        events = any_dialect.answer_to(
            "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=audio_end_ms
        )
        ends.append(one(events, "conversation.item.truncated")["audio_end_ms"])
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] == 0
    error = any_dialect.refusal(
        "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=-1
    )
    assert (error["code"], error["param"]) == ("bad_event", "audio_end_ms")
    any_dialect.still_answers()


def test_b29_an_empty_commit_draws_one_error(any_dialect: Caller) -> None:
    error = any_dialect.refusal("input_audio_buffer.commit")
    assert error["code"] in ("input_audio_buffer_empty", "input_audio_buffer_commit_empty")
    any_dialect.still_answers()


def test_b29_a_commit_behind_the_servers_own_draws_one_error(openai: Caller) -> None:
    openai.configure(audio={"input": {"turn_detection": {"type": "server_vad"}}})
    for _ in range(20):
        openai.says(0.4)
        openai.says(0.8, hz=0)
        openai.until("input_audio_buffer.committed")
        openai.send("input_audio_buffer.commit", event_id="e9")
        error = one(openai.until("error"), "error")["error"]
        assert (error["code"], error["event_id"]) == ("input_audio_buffer_commit_empty", "e9")


@pytest.mark.timeout(120)
def test_b30_too_much_audio_is_refused_and_the_session_lives(duplex: Caller) -> None:
    piece = base64.b64encode(bytes(1 << 20)).decode()
    for _ in range(20):
        duplex.send("input_audio_buffer.append", audio=piece)
    error = duplex.until("error")[-1]["error"]
    assert (error["code"], error["type"]) == ("input_backpressure", "rate_limit_error")
    assert error["retryable"] is True
    duplex.send("input_audio_buffer.clear")
    duplex.until("input_audio_buffer.cleared")
    duplex.still_answers()


def test_b31_a_partial_update_keeps_the_rest(openai: Caller) -> None:
    openai.configure(audio={"input": {"turn_detection": {"type": "server_vad"}}})
    patch = {"input": {"turn_detection": {"threshold": 0.8}}}
    detection = openai.configure(audio=patch)["audio"]["input"]["turn_detection"]
    assert (detection["type"], detection["threshold"]) == ("server_vad", 0.8)
    assert detection["silence_duration_ms"] == 500
    before = openai.configure()
    openai.send("session.update", session={"instructions": "x", "temperature": -1})
    openai.until("error")
    assert openai.configure() == before


@pytest.mark.parametrize("spelling", ["g711-mulaw", "mp3", 7])
def test_b32_a_format_that_is_none_is_refused_by_name(openai: Caller, spelling: object) -> None:
    error = openai.refusal("session.update", session={"input_audio_format": spelling})
    assert error["code"] == "unsupported_audio_format"
    assert error["param"] == "session.input_audio_format"


def test_b32_a_format_that_is_one_is_echoed_and_heard(openai: Caller) -> None:
    session = openai.configure(input_audio_format="g711_ulaw")
    assert session["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    square = (b"\x90" * 10 + b"\x10" * 10) * 400  # 400 Hz at 8 kHz
    openai.send("input_audio_buffer.append", audio=base64.b64encode(square).decode())
    openai.send("input_audio_buffer.commit")
    events = openai.until("conversation.item.input_audio_transcription.completed")
    assert events[-1]["transcript"] == "tone 400 Hz 1.0 s"


def test_b63_two_outputs_and_two_requests_make_one_follow_up(any_dialect: Caller) -> None:
    any_dialect.writes("call look_up noon call set_alarm ten")
    output = any_dialect.asks(tools=[LOOK_UP, SET_ALARM])[-2]["response"]["output"]
    assert [made["name"] for made in output] == ["look_up", "set_alarm"]
    for made in output:
        item = {"type": "function_call_output", "call_id": made["call_id"], "output": "done"}
        any_dialect.send("conversation.item.create", item=item)
        any_dialect.send("response.create", event_id=made["call_id"])
    events = any_dialect.until_now()
    if "rate_limits.updated" not in types(events):
        events += any_dialect.until("rate_limits.updated")
    created = types(events).count("response.created")
    refused = [event["error"] for event in events if event["type"] == "error"]
    assert created + len(refused) == 2
    assert created >= 1
    assert {error["code"] for error in refused} <= {
        "response_already_active",
        "conversation_already_has_active_response",
    }


SAMPLES = ["http://127.0.0.1:{port}/v.wav", "http://user@[::1]:{port}"]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Somebody who might be called."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.mark.parametrize("scheme", SAMPLES)
def test_b68_nobody_is_called_for_a_voice_sample(
    duplex: Caller, listener: socket.socket, scheme: str
) -> None:
    url = scheme.format(port=listener.getsockname()[1])
    error = duplex.refusal("session.update", session={"ref_audio": url})
    assert error["param"] == "ref_audio"
    duplex.still_answers()
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("scheme", SAMPLES)
def test_b68_nobody_is_called_for_the_sample_that_a_session_opens_with(
    base: str, listener: socket.socket, scheme: str
) -> None:
    url = scheme.format(port=listener.getsockname()[1])
    with Talk(base, "/v1/duplex?autostart=0") as talk:
        talk.send("session.update", session={"ref_audio": url}, event_id="e1")
        (event,), code, _ = talk.ends()
    error = event["error"]
    assert (event["type"], error["param"], error["event_id"]) == ("error", "ref_audio", "e1")
    assert code == 1008
    with pytest.raises(BlockingIOError):
        listener.accept()
