"""An answer that is said to its end: speech over it is heard, and answered after it."""

from tests.engine.duplex.session.driver import SessionDriver, loud
from tests.engine.duplex.session.over_an_answer import TO_THE_END, answering, decisions, statuses

from omniduplex.protocol.duplex import CancelResponse, OutputCleared


def test_speech_does_not_stop_an_answer_that_is_said_to_its_end(driver: SessionDriver) -> None:
    answering(driver, TO_THE_END)
    driver.user_turn("Stop, I have a question")

    assert driver.kinds()[:3] == ["SpeechStarted", "OverlapDecision", "SpeechStopped"]
    assert decisions(driver) == [("listen", "response_uninterruptible")]
    assert driver.open_responses == ["resp_1"]
    driver.model_ends(key="answer_1")
    assert statuses(driver) == ["completed"]
    assert driver.open_responses == ["resp_2"]
    assert driver.said[-1] == ("user", "Stop, I have a question")


def test_it_is_played_to_its_end_too(driver: SessionDriver) -> None:
    answering(driver, TO_THE_END).model_ends()
    driver.user_speaks()
    assert driver.of(OutputCleared) == []
    assert decisions(driver) == [("listen", "response_uninterruptible")]


def test_the_next_answer_may_be_interrupted_again(driver: SessionDriver) -> None:
    answering(driver, TO_THE_END).model_ends()
    driver.passes(5000)
    answering(driver)
    driver.user_speaks()
    assert statuses(driver) == ["completed", "cancelled"]


def test_an_append_cannot_force_its_way_in(by_hand: SessionDriver) -> None:
    answering(by_hand, TO_THE_END)
    by_hand.append(900, force_barge_in=True)
    assert decisions(by_hand) == [("listen", "response_uninterruptible")]
    by_hand.model_ends()
    assert by_hand.model.heard == loud(900)


def test_its_client_may_still_cancel_it(by_hand: SessionDriver) -> None:
    answering(by_hand, TO_THE_END)
    by_hand.send(CancelResponse())
    assert statuses(by_hand) == ["cancelled"]
