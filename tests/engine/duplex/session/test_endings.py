"""How a session ends: stage loss (7.8), a slow reader (10), closing and expiry."""

from typing import NoReturn

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver, kinds

from omniduplex.engine.duplex.contracts import Abort
from omniduplex.engine.duplex.model_events import UserSpeechStarted
from omniduplex.engine.duplex.session.effects import DropQueuedAudio, Ended
from omniduplex.engine.duplex.session.inputs import (
    AnswersGivenUp,
    AudioReady,
    CloseRequest,
    OutputOverflow,
    SessionInput,
    StageLost,
    StageResult,
)
from omniduplex.protocol.duplex import (
    CLIENT_CLOSE,
    AckPlayback,
    AppendAudio,
    CloseSession,
    Commit,
    CreateResponse,
    Dialect,
    DuplexError,
    Heartbeat,
    OutputCleared,
    OutputStarted,
    ResponseDone,
    SessionClosed,
    SessionExpired,
)
from omniduplex.stages.messages import StageOutput

LOST = StageLost(0, "the worker died")
ENDINGS: dict[str, SessionInput] = {
    "client": CloseSession(reason="bye"),
    "server": CloseRequest(reason="shutdown"),
    "idle": CloseRequest(reason="idle_ttl_expired", expired=True),
    "stage": LOST,
    "slow reader": OutputOverflow(),
}


def speaking(driver: SessionDriver) -> SessionDriver:
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello")
    driver.events()
    return driver


@pytest.mark.parametrize("name", ENDINGS)
def test_nothing_follows_the_closing_event(driver: SessionDriver, name: str) -> None:
    speaking(driver)
    driver.feed(ENDINGS[name])
    assert isinstance(driver.log[-1], SessionClosed | SessionExpired)
    assert driver.model.closed
    assert driver.session.closed
    assert isinstance(driver.effects[-1], Ended)
    driver.model.says = [UserSpeechStarted(0)]
    seen = len(driver.effects)
    for item in (
        AppendAudio(audio=b"\0\0"),
        Commit(),
        CreateResponse(),
        Heartbeat(),
        AckPlayback(played_ms=1),
        CloseSession(),
        StageResult(0, StageOutput("open")),
        AudioReady(1, b""),
        *ENDINGS.values(),
    ):
        driver.feed(item)

    assert len(driver.effects) == seen


def test_a_client_hears_its_own_reason(driver: SessionDriver) -> None:
    driver.send(CloseSession(reason="bye"))
    closed = driver.last(SessionClosed)
    assert (closed.reason, closed.event.reason, closed.epoch) == ("bye", "bye", 0)
    assert driver.effects[-1] == Ended(CLIENT_CLOSE)
    assert Abort(("open",)) in driver.effects


@pytest.mark.parametrize("letter", ["x", "é", "語", "🙂"])
def test_of_a_long_reason_a_client_hears_what_a_close_frame_holds(
    driver: SessionDriver, letter: str
) -> None:
    driver.send(CloseSession(reason=letter * 100_000))
    closed = driver.last(SessionClosed)
    assert closed.reason == closed.event.reason
    assert set(closed.reason) == {letter}
    assert 123 - 3 <= len(closed.reason.encode()) <= 123
    assert driver.effects[-1] == Ended(CLIENT_CLOSE)


def test_expiry_has_an_event_of_its_own(driver: SessionDriver) -> None:
    driver.feed(CloseRequest(reason="idle_ttl_expired", expired=True))
    assert driver.events() == [SessionExpired(session_id="s1", reason="idle_ttl_expired")]


def test_a_lost_stage_fails_the_answer_then_the_session(driver: SessionDriver) -> None:
    speaking(driver)
    driver.feed(LOST)

    names = driver.kinds()
    assert names[0] == "ErrorEvent"
    assert names[-3:] == ["ResponseDone", "RateLimitsUpdated", "SessionExpired"]
    assert driver.error().code == "runtime_data_plane_stream_failed"
    assert driver.error().type == "server_error"
    done = driver.last(ResponseDone).response
    assert done.status == "failed"
    assert done.status_details
    assert done.status_details.reason == "runtime_data_plane_stream_failed"
    assert done.facts
    assert done.facts.committed is False
    assert driver.last(SessionExpired).reason == "request_cleanup"
    assert DropQueuedAudio("resp_1") in driver.effects


def test_a_lost_stage_is_told_to_an_idle_session_too(driver: SessionDriver) -> None:
    driver.feed(LOST)
    assert driver.kinds() == ["ErrorEvent", "SessionExpired"]


def test_a_model_that_fails_an_answer_keeps_the_session(driver: SessionDriver) -> None:
    speaking(driver)
    driver.model_fails()
    assert driver.kinds()[0] == "ErrorEvent"
    assert driver.last(ResponseDone).response.status == "failed"

    driver.user_turn("Again")
    assert driver.said == [("user", "Hi"), ("user", "Again")]
    driver.answers((100, "Hello."))
    assert driver.last(ResponseDone).response.status == "completed"


def test_a_slow_reader_loses_its_answer_then_its_session(driver: SessionDriver) -> None:
    speaking(driver)
    driver.feed(OutputOverflow())

    names = driver.kinds()
    assert names[0] == "ErrorEvent"
    assert names[-3:] == ["ResponseDone", "RateLimitsUpdated", "SessionClosed"]
    assert (driver.error().code, driver.error().type) == ("output_backpressure", "rate_limit_error")
    done = driver.last(ResponseDone).response
    assert (done.id, done.status) == ("resp_1", "failed")
    assert driver.last(SessionClosed).reason == "output_backpressure"
    assert driver.last(SessionClosed).session_id == "s1"


def test_a_slow_reader_without_an_answer_is_told_and_closed(driver: SessionDriver) -> None:
    driver.feed(OutputOverflow())
    assert driver.kinds() == ["ErrorEvent", "SessionClosed"]


def test_an_ending_that_found_no_room_becomes_a_failure(driver: SessionDriver) -> None:
    """The runner hands back the ending it could not queue: same id, same output, not kept."""
    speaking(driver)
    driver.model_ends()
    lost = driver.last(ResponseDone)
    del driver.log[driver.log.index(lost) :]
    shown = len(driver.log)
    driver.feed(OutputOverflow(endings=(lost,)))

    assert kinds(driver.log[shown:]) == [
        "ErrorEvent",
        "ResponseDone",
        "RateLimitsUpdated",
        "SessionClosed",
    ]
    done = driver.last(ResponseDone).response
    assert (done.id, done.status, done.output) == ("resp_1", "failed", lost.response.output)
    assert done.facts
    assert done.facts.committed is False


def test_an_ending_that_was_queued_is_not_told_again(driver: SessionDriver) -> None:
    speaking(driver)
    driver.model_ends()
    driver.feed(OutputOverflow())
    assert len(driver.of(ResponseDone)) == 1
    assert driver.last(ResponseDone).response.status == "completed"


def test_an_answer_the_reader_never_heard_of_does_not_end_either(driver: SessionDriver) -> None:
    shown = len(driver.log)
    driver.user_turn("Hi")
    del driver.log[shown:]
    driver.feed(OutputOverflow(unannounced=frozenset({"resp_1"})))
    assert kinds(driver.log[shown:]) == ["ErrorEvent", "SessionClosed"]


def test_an_answer_that_was_given_up_fails_and_the_next_turn_is_answered(
    driver: SessionDriver,
) -> None:
    speaking(driver)
    driver.feed(AnswersGivenUp(("resp_1",)))
    names = driver.kinds()
    assert names[0] == "ErrorEvent"
    assert names[-2:] == ["ResponseDone", "RateLimitsUpdated"]
    assert driver.error().code == "output_backpressure"
    assert driver.last(ResponseDone).response.status == "failed"
    assert driver.aborted == ["answer_1"]
    driver.model_audio(100, "late", key="answer_1")

    driver.user_turn("Again")
    driver.answers((100, "Hello."))
    assert driver.said == [("user", "Hi"), ("user", "Again")]
    assert driver.last(ResponseDone).response.status == "completed"


def test_a_whole_answer_that_was_given_up_was_never_said(driver: SessionDriver) -> None:
    speaking(driver)
    driver.model_ends()
    driver.events()
    driver.feed(AnswersGivenUp(("resp_1",)))

    assert driver.kinds() == ["ErrorEvent"]
    driver.user_turn("Again")
    assert driver.said == [("user", "Hi"), ("user", "Again")]
    assert driver.open_responses == ["resp_2"]


def test_a_whole_answer_that_was_given_up_plays_no_more(open_session: OpenSession) -> None:
    config = msgspec.structs.replace(LISTENING, dialect=Dialect.OPENAI)
    driver = speaking(open_session(config))
    driver.model_ends()
    driver.feed(AnswersGivenUp(("resp_1",)))
    assert driver.last(OutputCleared).response_id == "resp_1"

    driver.user_turn("Again")
    driver.model_audio(100, "Hello.")
    assert [started.response_id for started in driver.of(OutputStarted)] == ["resp_1", "resp_2"]


def test_an_answer_that_goes_on_is_not_stopped_for_one_that_was_given_up(
    driver: SessionDriver,
) -> None:
    speaking(driver)
    driver.model_ends()
    driver.passes(1000)
    driver.user_turn("Again")
    driver.feed(AnswersGivenUp(("resp_1",)))

    assert driver.open_responses == ["resp_2"]
    assert driver.aborted == []


def test_a_model_that_cannot_go_on_ends_its_session_with_a_reason(
    driver: SessionDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(stage_id: int, output: StageOutput) -> NoReturn:
        raise DuplexError("runtime_data_plane_stream_failed", "too much audio at once")

    speaking(driver)
    driver.events()
    monkeypatch.setattr(driver.model, "project", refuse)
    driver.feed(StageResult(0, StageOutput("ear", error="too much audio at once")))
    assert driver.kinds()[0] == "ErrorEvent"
    assert driver.error().message == "too much audio at once"
    assert driver.last(ResponseDone).response.status == "failed"
    assert driver.last(SessionExpired).reason == "request_cleanup"
