"""Answers of echo while it goes on listening: at the pace of what it hears, and unasked."""

from __future__ import annotations

import pytest
from tests.models.echo.driver import (
    PACED,
    SELF_START,
    SELF_START_PACED,
    EchoDriver,
    prompt,
    silence,
    tone,
    user,
)

from omniduplex.engine.duplex.model_events import (
    Listen,
    ResponseAudio,
    ResponseEnded,
    Speak,
    UserSpeechStarted,
    UserTurnEnded,
)
from omniduplex.models.echo.messages import EchoOptions


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
