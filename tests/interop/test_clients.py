"""Real, unmodified clients of the Realtime API take turns, interrupt and call tools."""

from __future__ import annotations

import pytest
from tests.e2e.hearing import understood
from tests.e2e.openai_events import complaints
from tests.e2e.recordings import recording
from tests.e2e.server import Server
from tests.interop.drivers import CallerFiles, Driver, Event, Rounds, Told

pytestmark = [pytest.mark.e2e, pytest.mark.interop, pytest.mark.timeout(400)]

ECHO = "omniduplex/echo"
LOCAL = "omniduplex/local"
# Echo's clock is the audio that it hears.
ECHO_SPEED = 4.0

every_detection = pytest.mark.parametrize("vad", ["server_vad", "semantic_vad", "none"])
speech_detection = pytest.mark.parametrize("vad", ["server_vad", "semantic_vad"])


def assert_well_received(told: Told) -> None:
    """Nobody found anything wrong: not the client, not the server, not the official models."""
    assert told.complaints == []
    assert told.of("error") == []
    assert told.not_understood in (None, [])
    assert [wrong for event in told.events for wrong in complaints(event)] == []


def assert_answered(told: Told) -> None:
    """Each response that began ended, the last one whole, and the client played what came."""
    assert assert_spoken(told)["status"] == "completed"


def assert_spoken(told: Told) -> Event:
    """Each response that began ended, and the client played what came; the last one."""
    begun = [event["response"]["id"] for event in told.of("response.created")]
    assert begun == [response["id"] for response in told.responses]
    last = told.responses[-1]
    assert told.transcript(last["id"]).strip()
    sent = {event["response_id"]: 0 for event in told.of("response.output_audio.delta")}
    for event in told.of("response.output_audio.delta"):
        sent[event["response_id"]] += event["audio_bytes"]
    assert 0 < sent[last["id"]] <= told.played_bytes <= sum(sent.values())
    return last


def assert_interrupted(told: Told) -> None:
    """The second turn fell into the first answer, and the client knew that it did."""
    assert len(told.responses) == 2
    assert told.interruptions in (None, 1)
    first = told.responses[0]["id"]
    assert [event["response_id"] for event in told.of("output_audio_buffer.cleared")] == [first]
    cleared = told.events.index(told.of("output_audio_buffer.cleared")[0])
    late = [e for e in told.events[cleared:] if e["type"] == "response.output_audio.delta"]
    assert first not in {event["response_id"] for event in late}


def assert_called(told: Told) -> None:
    """The tool was called once, and the answer tells its output."""
    first, second = told.responses
    (call,) = first["output"]
    assert (call["type"], call["name"]) == ("function_call", "get_weather")
    assert len(told.calls) == 1
    assert "Paris" in told.calls[0]
    assert "21 degrees" in told.transcript(second["id"])


@every_detection
def test_a_turn_with_echo(driver: Driver, echo_server: Server, rounds: Rounds, vad: str) -> None:
    told = rounds.talk(driver, echo_server, ECHO, "turn", vad, speed=ECHO_SPEED)

    assert_well_received(told)
    assert_answered(told)
    assert len(told.responses) == 1


@every_detection
def test_an_interruption_with_echo(
    driver: Driver, paced_echo_server: Server, rounds: Rounds, vad: str
) -> None:
    told = rounds.talk(driver, paced_echo_server, ECHO, "interrupt", vad, speed=ECHO_SPEED)

    assert_well_received(told)
    assert_answered(told)
    assert_interrupted(told)
    first = told.responses[0]
    assert first["status"] == "cancelled"
    by = "client_cancelled" if vad == "none" else "turn_detected"
    assert first["status_details"]["reason"] == by


@every_detection
def test_a_tool_with_echo(driver: Driver, echo_server: Server, rounds: Rounds, vad: str) -> None:
    told = rounds.talk(driver, echo_server, ECHO, "tool", vad, speed=ECHO_SPEED)

    assert_well_received(told)
    assert_answered(told)
    assert_called(told)


@pytest.mark.local
@speech_detection
def test_a_turn_with_the_embedded_model(
    driver: Driver, local_server: Server, files: CallerFiles, vad: str
) -> None:
    told = driver.talk(local_server, LOCAL, "turn", vad, files, speed=1.0)

    assert_well_received(told)
    answer = assert_spoken(told)
    # How long its answer gets is the small model's own affair, but for the limit.
    if answer["status"] != "completed":
        assert answer["status"] == "incomplete"
        assert answer["status_details"]["reason"] == "max_output_tokens"
    heard = told.of("conversation.item.input_audio_transcription.completed")
    words = " ".join(event["transcript"] for event in heard)
    assert understood(recording("capital").words, words)


@pytest.mark.local
@speech_detection
def test_an_interruption_with_the_embedded_model(
    driver: Driver, scripted_server: Server, files: CallerFiles, vad: str
) -> None:
    told = driver.talk(scripted_server, LOCAL, "interrupt", vad, files, speed=1.0)

    assert_well_received(told)
    assert_answered(told)
    assert_interrupted(told)
    # An answer is made before it is heard: if it is complete, what was left of it is dropped.
    assert told.responses[0]["status"] in ("completed", "cancelled")


@pytest.mark.local
@every_detection
def test_a_tool_with_the_embedded_model(
    driver: Driver, scripted_server: Server, files: CallerFiles, vad: str
) -> None:
    told = driver.talk(scripted_server, LOCAL, "tool", vad, files, speed=1.0)

    assert_well_received(told)
    assert_answered(told)
    assert_called(told)
