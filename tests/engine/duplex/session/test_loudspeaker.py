"""What plays at the user's: `output_audio_buffer` events of the OpenAI API."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver

from omniduplex.protocol.duplex import (
    AckPlayback,
    CancelResponse,
    ClearOutputAudio,
    CreateResponse,
    Dialect,
    OutputCleared,
    OutputStarted,
    OutputStopped,
    ResponseOptions,
)

OPENAI = msgspec.structs.replace(LISTENING, dialect=Dialect.OPENAI)
PLAYBACK = {"OutputStarted", "OutputStopped", "OutputCleared"}


def played(driver: SessionDriver) -> list[tuple[str, str | None]]:
    """Playback events so far, by name and response."""
    return [
        (type(event).__name__, event.response_id)
        for event in driver.log
        if isinstance(event, OutputStarted | OutputStopped | OutputCleared)
    ]


def test_an_answer_starts_with_its_first_audio_and_stops_when_it_was_played(
    driver: SessionDriver,
) -> None:
    driver.user_turn("Hi")
    driver.answers((600, "One "), (400, "two."))
    assert played(driver) == [("OutputStarted", "resp_1")]

    driver.passes(999)
    assert played(driver) == [("OutputStarted", "resp_1")]
    driver.passes(1)
    assert played(driver) == [("OutputStarted", "resp_1"), ("OutputStopped", "resp_1")]
    driver.passes(10_000)
    assert len(played(driver)) == 2


def test_an_answer_that_is_slower_than_its_playback_stops_once_it_is_whole(
    driver: SessionDriver,
) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "Well ...")
    driver.passes(5000)
    assert played(driver) == [("OutputStarted", "resp_1")]
    driver.events()
    driver.model_ends()
    assert driver.kinds()[-3:] == ["ResponseDone", "RateLimitsUpdated", "OutputStopped"]


def test_what_nobody_hears_does_not_start(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse(response=ResponseOptions(output_modalities=("text",))))
    by_hand.model_text("Hello.")
    by_hand.model_ends()
    assert played(by_hand) == []


def test_a_client_that_acknowledges_says_when_it_has_played(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.answers((1000, "One two."))
    driver.send(AckPlayback(played_ms=400))
    driver.passes(60_000)
    assert played(driver) == [("OutputStarted", "resp_1")]
    driver.send(AckPlayback(played_ms=1000))
    assert played(driver)[1:] == [("OutputStopped", "resp_1")]


@pytest.mark.parametrize("command", [CancelResponse(), ClearOutputAudio()])
def test_an_openai_client_hears_that_a_cancelled_answer_is_cleared(
    open_session: OpenSession, command: CancelResponse | ClearOutputAudio
) -> None:
    driver = open_session(OPENAI)
    driver.user_turn("Hi")
    driver.model_audio(1000, "A long ")
    driver.send(command)
    driver.passes(5000)
    assert played(driver) == [("OutputStarted", "resp_1"), ("OutputCleared", "resp_1")]


def test_an_openai_client_hears_that_an_interrupted_answer_is_cleared(
    open_session: OpenSession,
) -> None:
    driver = open_session(OPENAI)
    driver.user_turn("Hi")
    driver.model_audio(1000, "A long ")
    driver.events()
    driver.user_speaks(2000)
    kinds = driver.kinds()
    assert kinds.index("SpeechStarted") < kinds.index("OutputCleared") < kinds.index("ResponseDone")


def test_an_openai_client_hears_that_a_failed_answer_is_cleared(open_session: OpenSession) -> None:
    driver = open_session(OPENAI)
    driver.user_turn("Hi")
    driver.model_audio(1000, "A long ")
    driver.model_fails()
    driver.passes(5000)
    assert played(driver) == [("OutputStarted", "resp_1"), ("OutputCleared", "resp_1")]


def test_what_was_not_yet_heard_is_not_cleared(open_session: OpenSession) -> None:
    driver = open_session(OPENAI)
    driver.user_turn("Hi")
    driver.send(CancelResponse())
    assert played(driver) == []


def test_in_the_contract_a_cancelled_answer_needs_no_clearing(driver: SessionDriver) -> None:
    """Wire contract, section 7.4: only what asks for it is told."""
    driver.user_turn("Hi")
    driver.model_audio(1000, "A long ")
    driver.send(CancelResponse())
    driver.passes(5000)
    assert played(driver) == [("OutputStarted", "resp_1")]


def test_a_finished_answer_that_is_talked_over_is_cleared_not_stopped(
    driver: SessionDriver,
) -> None:
    driver.user_turn("Hi")
    driver.answers((1000, "One two."))
    driver.passes(500)
    driver.user_speaks(2000)
    driver.passes(5000)
    assert played(driver) == [("OutputStarted", "resp_1"), ("OutputCleared", "resp_1")]


def test_the_next_answer_ends_the_playback_of_the_one_before(open_session: OpenSession) -> None:
    driver = open_session(BY_HAND)
    for words in ("Hi", "And?"):
        driver.says(words)
        driver.send(CreateResponse())
        driver.answers((1000, "Yes."))
    assert played(driver) == [
        ("OutputStarted", "resp_1"),
        ("OutputStopped", "resp_1"),
        ("OutputStarted", "resp_2"),
    ]
