"""Answers begun in secret while the user may still go on."""

import pytest
from tests.engine.duplex.session.driver import SessionDriver, kinds

from omniduplex.protocol.duplex import (
    CancelInput,
    ClearInput,
    CreateResponse,
    DuplexCommand,
    ResponseCreated,
    ResponseDone,
    SessionPatch,
    TranscriptDone,
    UpdateSession,
)


def drafted(driver: SessionDriver, words: str = "How are you?") -> SessionDriver:
    """The user paused after these words, and a draft has begun."""
    driver.user_speaks()
    driver.user_pauses(words)
    return driver


def test_a_draft_shows_nothing(driver: SessionDriver) -> None:
    drafted(driver)
    driver.model_audio(200, "I am fine.")

    assert driver.kinds() == ["SpeechStarted"]
    assert driver.said == [("user", "How are you?")]
    assert driver.session.public_object().active_response_id is None


def test_a_draft_becomes_the_answer_to_just_its_words(driver: SessionDriver) -> None:
    drafted(driver)
    driver.model_audio(200, "I am ")
    driver.user_turn_ends("How are you?")
    driver.model_audio(200, "fine.")
    driver.model_ends()

    assert len(driver.prompts) == 1
    assert driver.aborted == []
    assert driver.last(TranscriptDone).transcript == "I am fine."
    names = kinds(driver.log)
    assert names.index("InputCommitted") < names.index("ResponseCreated")
    assert names.index("ResponseCreated") < names.index("AudioDelta")


def test_a_draft_that_was_whole_already_is_shown_whole(driver: SessionDriver) -> None:
    drafted(driver)
    driver.answers((200, "Fine."))
    driver.user_turn_ends("How are you?")

    assert driver.last(ResponseDone).response.status == "completed"
    driver.passes(200)
    driver.user_turn("Good")
    assert driver.said[1] == ("assistant", "Fine.")


def test_other_words_make_another_answer(driver: SessionDriver) -> None:
    drafted(driver, "How are")
    driver.model_audio(200, "Are what?")
    driver.user_turn_ends("How are you?")
    driver.model_audio(200, "stale", key="answer_1")
    driver.answers((200, "Fine."))

    assert driver.aborted == ["answer_1"]
    assert driver.last(TranscriptDone).transcript == "Fine."
    assert len(driver.of(ResponseCreated)) == 1


def test_going_on_drops_the_draft(driver: SessionDriver) -> None:
    drafted(driver, "How")
    driver.user_goes_on()
    driver.model_audio(200, "stale", key="answer_1")
    assert driver.aborted == ["answer_1"]

    driver.user_pauses("How are you?")
    driver.user_turn_ends("How are you?")
    assert driver.key == "answer_2"
    driver.answers((200, "Fine."))
    assert driver.last(TranscriptDone).transcript == "Fine."


def test_the_same_pause_twice_is_one_draft(driver: SessionDriver) -> None:
    drafted(driver)
    driver.user_pauses("How are you?")
    assert (len(driver.prompts), driver.aborted) == (1, [])

    driver.user_pauses("How are you today?")
    assert (len(driver.prompts), driver.aborted) == (2, ["answer_1"])


def test_silence_after_all_drops_the_draft(driver: SessionDriver) -> None:
    drafted(driver)
    driver.user_turn_ends("")
    assert driver.aborted == ["answer_1"]
    assert driver.of(ResponseCreated) == []


def test_a_conversation_that_changed_meanwhile_needs_another_answer(
    driver: SessionDriver,
) -> None:
    drafted(driver)
    driver.says("By the way, I am Ann.")
    driver.user_turn_ends("How are you?")

    assert driver.aborted == ["answer_1"]
    assert driver.said == [("user", "By the way, I am Ann."), ("user", "How are you?")]


def test_a_setting_that_changed_meanwhile_needs_another_answer(driver: SessionDriver) -> None:
    drafted(driver)
    driver.send(UpdateSession(session=SessionPatch(instructions="Rhyme.")))
    driver.user_turn_ends("How are you?")

    assert driver.aborted == ["answer_1"]
    assert driver.prompts[-1].instructions == "Rhyme."


def test_an_answer_asked_for_by_the_client_comes_before_the_draft(driver: SessionDriver) -> None:
    drafted(driver)
    driver.send(CreateResponse())
    assert driver.aborted == ["answer_1"]
    assert driver.open_responses == ["resp_1"]

    driver.user_turn_ends("How are you?")
    driver.answers((100, "Hello."))
    assert driver.open_responses == ["resp_2"]
    assert driver.said[-1] == ("user", "How are you?")


@pytest.mark.parametrize("command", [ClearInput(), CancelInput()])
def test_dropping_input_drops_its_draft(driver: SessionDriver, command: DuplexCommand) -> None:
    drafted(driver)
    driver.send(command)
    driver.model_audio(200, "stale", key="answer_1")

    assert driver.aborted == ["answer_1"]
    assert driver.of(ResponseCreated) == []


def test_speech_that_starts_anew_drops_the_draft(driver: SessionDriver) -> None:
    drafted(driver)
    driver.user_speaks()
    assert driver.aborted == ["answer_1"]


def test_no_draft_is_begun_beside_an_answer(driver: SessionDriver) -> None:
    driver.send(CreateResponse())
    driver.user_pauses("How are you?")
    assert len(driver.prompts) == 1


def test_pauses_without_words_begin_nothing(driver: SessionDriver) -> None:
    driver.user_speaks()
    driver.user_pauses("")
    assert driver.prompts == []


def test_turns_that_are_not_answered_have_no_drafts(by_hand: SessionDriver) -> None:
    by_hand.user_pauses("How are you?")
    assert by_hand.prompts == []


def test_a_draft_that_failed_fails_as_the_answer(driver: SessionDriver) -> None:
    drafted(driver)
    driver.model_fails()
    assert driver.kinds() == ["SpeechStarted"]
    driver.user_turn_ends("How are you?")

    assert driver.last(ResponseDone).response.status == "failed"
    assert driver.open_responses == []
