"""`idle_timeout_ms` of server VAD: who was answered and says nothing is spoken to again."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver, quiet

from omniduplex.protocol.duplex import (
    CreateResponse,
    DuplexSessionConfig,
    InputCommitted,
    ItemRetrieved,
    ResponseOptions,
    RetrieveItem,
    SessionPatch,
    TimeoutTriggered,
    TurnDetection,
    TurnDetectionPatch,
    UpdateSession,
)


def with_timeout(ms: int | None = 5000, **fields: object) -> DuplexSessionConfig:
    detection = msgspec.structs.replace(TurnDetection(idle_timeout_ms=ms), **fields)
    return msgspec.structs.replace(LISTENING, turn_detection=detection)


def answered(open_session: OpenSession, config: DuplexSessionConfig) -> SessionDriver:
    """The user asked something and has an answer of one second."""
    driver = open_session(config)
    driver.append(pcm=quiet(2000))
    driver.user_turn("Hi")
    driver.answers((1000, "Hello."))
    driver.events()
    return driver


def timeouts(driver: SessionDriver) -> list[TimeoutTriggered]:
    return driver.of(TimeoutTriggered)


def test_the_silence_is_committed_and_answered(open_session: OpenSession) -> None:
    driver = answered(open_session, with_timeout())
    driver.passes(1000)
    for _ in range(5):
        driver.append(pcm=quiet(1000))
    driver.passes(4999)
    assert timeouts(driver) == []
    driver.passes(1)

    assert driver.kinds() == [
        "OutputStopped",
        "TimeoutTriggered",
        "ItemAdded",
        "ItemCreated",
        "InputCommitted",
        "ItemDone",
        "ResponseCreated",
        "ItemAdded",
        "ItemCreated",
        "OutputItemAdded",
        "ContentPartAdded",
    ]
    (event,) = timeouts(driver)
    assert (event.audio_start_ms, event.audio_end_ms) == (2000, 7000)
    committed = driver.last(InputCommitted)
    assert committed.item_id == event.item_id
    assert committed.event
    assert committed.event.empty is True
    assert committed.event.no_response is msgspec.UNSET
    driver.send(RetrieveItem(item_id=event.item_id))
    (part,) = driver.last(ItemRetrieved).item.content or ()
    assert (part.type, part.transcript) == ("input_audio", "")
    assert driver.said == [("user", "Hi"), ("assistant", "Hello.")]


def test_it_goes_on_after_every_answer(open_session: OpenSession) -> None:
    driver = answered(open_session, with_timeout())
    for count in (1, 2, 3):
        driver.passes(6000)
        assert len(timeouts(driver)) == count
        driver.answers((1000, "Are you there?"))
    assert len(driver.open_responses) == 0


def test_nobody_is_spoken_to_before_the_first_answer(open_session: OpenSession) -> None:
    driver = open_session(with_timeout())
    driver.passes(60_000)
    assert timeouts(driver) == []


def test_who_speaks_is_not_silent(open_session: OpenSession) -> None:
    driver = answered(open_session, with_timeout())
    driver.passes(5500)
    driver.user_speaks(8000)
    driver.passes(60_000)
    assert timeouts(driver) == []


def test_a_sound_without_words_begins_the_silence_anew(open_session: OpenSession) -> None:
    driver = answered(open_session, with_timeout())
    driver.passes(5500)
    driver.user_turn("")
    driver.passes(4999)
    assert timeouts(driver) == []
    driver.passes(1)
    assert len(timeouts(driver)) == 1


def test_a_written_answer_is_read_at_once(open_session: OpenSession) -> None:
    driver = open_session(with_timeout())
    driver.says("Hi")
    driver.send(CreateResponse(response=ResponseOptions(output_modalities=("text",))))
    driver.model_text("Hello.")
    driver.model_ends()
    driver.passes(4999)
    assert timeouts(driver) == []
    driver.passes(1)
    assert len(timeouts(driver)) == 1


@pytest.mark.parametrize(
    "config",
    [
        with_timeout(None),
        with_timeout(type="semantic_vad"),
        with_timeout(create_response=False),
        msgspec.structs.replace(LISTENING, turn_detection=None),
    ],
    ids=["no timeout", "semantic_vad", "no responses", "no turn detection"],
)
def test_without_it_silence_may_last(
    open_session: OpenSession, config: DuplexSessionConfig
) -> None:
    driver = open_session(config)
    driver.says("Hi")
    driver.send(CreateResponse())
    driver.answers((1000, "Hello."))
    driver.passes(60_000)
    assert timeouts(driver) == []


def test_it_can_be_set_and_taken_back_while_time_runs(open_session: OpenSession) -> None:
    driver = answered(open_session, with_timeout(None))
    driver.passes(3000)
    set_timeout(driver, 5000)
    driver.passes(2000)
    set_timeout(driver, None)
    driver.passes(60_000)
    assert timeouts(driver) == []
    set_timeout(driver, 5000)
    driver.passes(0)
    assert len(timeouts(driver)) == 1


def set_timeout(driver: SessionDriver, ms: float | None) -> None:
    patch = TurnDetectionPatch(idle_timeout_ms=ms)
    driver.send(UpdateSession(session=SessionPatch(turn_detection=patch)))


def test_a_session_without_its_client_waits(open_session: OpenSession) -> None:
    driver = answered(open_session, with_timeout())
    driver.session.detach(0, driver.clock)
    driver.passes(60_000)
    assert timeouts(driver) == []
