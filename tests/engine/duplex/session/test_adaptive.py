"""The adaptive overlap policy: assent passes, interruptions strike, nothing is told twice."""

import msgspec
import pytest
from msgspec import UnsetType
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver

from omniduplex.engine.duplex.model_events import UserSpeechProgress, UserTurnEnded
from omniduplex.protocol.duplex import (
    ClearInput,
    CreateResponse,
    InputCommitted,
    ListenDecision,
    OutputCleared,
    OverlapDecision,
    ResponseDone,
    ResponseOptions,
    SpeechStarted,
    SpeechStopped,
)

ADAPTIVE = msgspec.structs.replace(LISTENING, overlap_policy="adaptive")


@pytest.fixture
def driver(open_session: OpenSession) -> SessionDriver:
    return open_session(ADAPTIVE)


def answering(driver: SessionDriver) -> None:
    """An answer of 2 s is being made."""
    driver.append(600)
    driver.user_turn("Tell me a story")
    driver.model_audio(2000, "Once upon a time there was a king. ")
    driver.events()


def progress(driver: SessionDriver, ms: float, words: str | None = None, level: float = 0) -> None:
    driver.model_says(UserSpeechProgress(ms, level, words))


def test_an_onset_over_an_answer_is_kept_back(driver: SessionDriver) -> None:
    answering(driver)
    driver.user_speaks(at_ms=900)
    progress(driver, 200)
    assert driver.kinds() == ["OverlapDecision"]
    assert driver.last(OverlapDecision).reason == "short_ack"
    assert driver.open_responses == ["resp_1"]


def test_b06_an_acknowledgement_passes_and_is_no_turn(driver: SessionDriver) -> None:
    answering(driver)
    driver.user_speaks()
    progress(driver, 300, "Mm-hm.")
    driver.user_turn_ends("Mm-hm.")
    driver.model_audio(1000, "He had a castle.")
    driver.model_ends()

    assert len(driver.of(SpeechStarted)) == len(driver.of(InputCommitted)) == 1
    assert driver.last(OverlapDecision).reason == "short_ack_transcript"
    assert driver.last(ResponseDone).response.status == "completed"
    assert [role for role, _ in driver.said].count("user") == 1


def test_backchannels_never_interrupt_however_many(driver: SessionDriver) -> None:
    answering(driver)
    for words in ("Yeah.", "Okay.", "Right, right.", "Uh-huh.") * 5:
        driver.user_speaks()
        progress(driver, 400)
        driver.user_turn_ends(words)
    assert driver.open_responses == ["resp_1"]


def test_words_of_an_interruption_strike_while_they_are_spoken(driver: SessionDriver) -> None:
    answering(driver)
    driver.user_speaks(at_ms=900)
    progress(driver, 300, "Wait, stop")

    assert driver.kinds()[:2] == ["OverlapDecision", "SpeechStarted"]
    assert driver.last(SpeechStarted).audio_start_ms == 900
    details = driver.last(ResponseDone).response.status_details
    assert details
    assert details.reason == "turn_detected"

    driver.user_turn_ends("Wait, stop. What about tomorrow?")
    assert len(driver.of(SpeechStarted)) == len(driver.of(SpeechStopped)) == 2
    assert driver.said[-1] == ("user", "Wait, stop. What about tomorrow?")
    assert driver.open_responses == ["resp_2"]


def test_long_speech_without_known_words_strikes(driver: SessionDriver) -> None:
    answering(driver)
    driver.user_speaks()
    for ms in range(100, 1300, 100):
        progress(driver, ms)
    reasons = [decision.reason for decision in driver.of(OverlapDecision)]
    assert reasons == ["short_ack", "accumulating_overlap_speech", "long_overlap_speech"]
    assert driver.last(ResponseDone).response.status == "cancelled"


def test_an_interruption_known_only_at_its_end_is_a_turn(driver: SessionDriver) -> None:
    answering(driver)
    driver.user_speaks()
    progress(driver, 600)
    driver.user_turn_ends("And then what happened?")
    assert driver.last(ResponseDone).response.status == "cancelled"
    assert driver.said[-1] == ("user", "And then what happened?")
    assert driver.open_responses == ["resp_2"]


def test_noise_over_an_answer_is_dropped(driver: SessionDriver) -> None:
    answering(driver)
    driver.user_speaks()
    driver.user_turn_ends("")
    assert driver.last(OverlapDecision).action == "drop"
    assert driver.open_responses == ["resp_1"]


def test_assent_after_the_answer_was_heard_is_a_reply(driver: SessionDriver) -> None:
    driver.append(600)
    driver.user_turn("Ask me whether I want tea")
    driver.model_audio(800, "Do you want tea?")
    driver.model_ends()
    driver.passes(700)
    driver.user_speaks()
    assert driver.of(SpeechStarted)[1:] == []
    driver.passes(600)
    driver.user_turn_ends("Yes.")
    assert driver.said[-1] == ("user", "Yes.")
    assert len(driver.of(SpeechStarted)) == len(driver.of(SpeechStopped)) == 2


def test_an_interruption_of_what_only_plays_clears_it(driver: SessionDriver) -> None:
    answering(driver)
    driver.model_ends()
    driver.user_speaks()
    progress(driver, 600, "No, the other one")
    assert driver.last(OutputCleared).response_id == "resp_1"


def test_a_clear_forgets_what_was_being_judged(driver: SessionDriver) -> None:
    answering(driver)
    driver.user_speaks()
    driver.send(ClearInput())
    progress(driver, 3000, "Stop!")
    assert driver.open_responses == ["resp_1"]


FAR = UserSpeechProgress(1500, -35.0, brightness_db=-25.0)
NEAR = UserSpeechProgress(1500, -23.0, brightness_db=-14.0)


def says(driver: SessionDriver, words: str, speech: UserSpeechProgress) -> None:
    driver.user_speaks()
    driver.model_says(UserTurnEnded(1000, words, speech))


def test_speech_to_others_in_silence_is_told_and_not_answered(driver: SessionDriver) -> None:
    says(driver, "Did you feed the cat?", FAR)
    assert driver.last(OverlapDecision).action == "drop"
    assert driver.last(OverlapDecision).reason == "non_directed_speech"
    assert driver.last(ListenDecision).response.metadata.reason == "non_directed_speech"
    assert len(driver.of(SpeechStarted)) == len(driver.of(SpeechStopped)) == 1
    assert driver.of(InputCommitted) == []
    assert driver.open_responses == []


def test_who_is_far_away_and_insists_is_answered(driver: SessionDriver) -> None:
    says(driver, "Can you hear me?", FAR)
    says(driver, "Can you hear me now?", FAR)
    assert driver.said == [("user", "Can you hear me now?")]
    assert driver.open_responses == ["resp_1"]


def test_who_is_quieter_than_the_user_is_not_meant_however_often(driver: SessionDriver) -> None:
    says(driver, "Tell me a story", NEAR)
    driver.model_audio(2000, "Once upon a time there was a king. ")
    for _ in range(3):
        driver.user_speaks()
        driver.model_says(UserSpeechProgress(600, -35.0, "Did you feed"))
        driver.model_says(UserTurnEnded(1000, "Did you feed the cat?", FAR))
    assert {decision.reason for decision in driver.of(OverlapDecision)} == {"non_directed_speech"}
    assert driver.open_responses == ["resp_1"]


def test_a_sound_without_words_in_silence_is_no_turn(driver: SessionDriver) -> None:
    says(driver, "Um.", NEAR)
    assert driver.last(OverlapDecision).reason == "silence_or_noise"
    assert driver.open_responses == []


# Answers that are said to their end


@pytest.fixture
def to_the_end(driver: SessionDriver) -> SessionDriver:
    """An answer of 2 s is being made, and nothing may interrupt it."""
    driver.says("Read me my rights")
    driver.send(CreateResponse(response=ResponseOptions(interruptible=False)))
    driver.model_audio(2000, "You have the right to remain silent. ")
    driver.events()
    return driver


def reasons(driver: SessionDriver) -> list[tuple[str, str]]:
    return [(decision.action, decision.reason) for decision in driver.of(OverlapDecision)]


@pytest.mark.parametrize("words", ["Mm-hm.", "Yeah, okay.", "Go on."])
def test_assent_to_an_answer_that_is_said_to_its_end_is_no_turn(
    to_the_end: SessionDriver, words: str
) -> None:
    to_the_end.user_speaks()
    progress(to_the_end, 300)
    to_the_end.user_turn_ends(words)
    to_the_end.model_ends()

    assert reasons(to_the_end) == [("listen", "short_ack"), ("listen", "short_ack_transcript")]
    assert to_the_end.of(SpeechStarted) == []
    assert to_the_end.of(InputCommitted) == []
    assert to_the_end.open_responses == []


def test_a_cough_over_an_answer_that_is_said_to_its_end_is_dropped(
    to_the_end: SessionDriver,
) -> None:
    to_the_end.user_speaks()
    to_the_end.user_turn_ends("")
    to_the_end.model_ends()

    assert reasons(to_the_end) == [("drop", "silence_or_noise")]
    assert to_the_end.open_responses == []


def test_a_turn_over_an_answer_that_is_said_to_its_end_is_answered_after_it(
    to_the_end: SessionDriver,
) -> None:
    to_the_end.user_speaks(at_ms=900)
    progress(to_the_end, 300, "Stop, I have")
    assert reasons(to_the_end) == [("listen", "response_uninterruptible")]
    to_the_end.user_turn_ends("Stop, I have a question")

    kinds = to_the_end.kinds()
    assert kinds[:3] == ["OverlapDecision", "SpeechStarted", "SpeechStopped"]
    assert "InputCommitted" in kinds
    assert len(reasons(to_the_end)) == 1
    assert to_the_end.last(SpeechStarted).audio_start_ms == 900
    facts = to_the_end.last(InputCommitted).event
    assert not isinstance(facts, UnsetType)
    assert facts.response_create_deferred is True
    assert to_the_end.open_responses == ["resp_1"]
    to_the_end.model_ends(key="answer_1")
    assert to_the_end.last(ResponseDone).response.status == "completed"
    assert to_the_end.open_responses == ["resp_2"]
    assert to_the_end.said[-1] == ("user", "Stop, I have a question")


def test_what_sounds_like_a_turn_and_is_assent_by_its_words_is_none(
    to_the_end: SessionDriver,
) -> None:
    to_the_end.user_speaks()
    progress(to_the_end, 1300)
    to_the_end.user_turn_ends("Okay. Right. I see, I see.")
    to_the_end.model_ends()

    assert reasons(to_the_end) == [
        ("listen", "response_uninterruptible"),
        ("listen", "short_ack_transcript"),
    ]
    assert to_the_end.of(InputCommitted) == []


def test_who_speaks_on_beyond_such_an_answer_has_the_floor(to_the_end: SessionDriver) -> None:
    to_the_end.user_speaks(at_ms=900)
    to_the_end.model_ends()
    progress(to_the_end, 300)
    to_the_end.passes(2500)
    progress(to_the_end, 2800, "Yes, and another thing")
    assert to_the_end.last(SpeechStarted).audio_start_ms == 900
    to_the_end.user_turn_ends("Yes, and another thing")
    assert to_the_end.open_responses == ["resp_2"]


def test_such_an_answer_is_played_to_its_end_too(to_the_end: SessionDriver) -> None:
    to_the_end.model_ends()
    to_the_end.user_speaks()
    progress(to_the_end, 600, "No, the other one")
    assert reasons(to_the_end) == [("listen", "response_uninterruptible")]
    assert to_the_end.of(OutputCleared) == []
