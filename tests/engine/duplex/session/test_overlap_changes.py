"""Who judges speech over an answer, or how, changes while the user speaks."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver, loud, quiet
from tests.engine.duplex.session.over_an_answer import answering, decisions, statuses

from omniduplex.engine.duplex.model_events import UserSpeechProgress
from omniduplex.protocol.duplex import (
    InputCommitted,
    SessionPatch,
    SpeechStarted,
    TurnDetectionPatch,
    UpdateSession,
)

LISTEN_ONLY = SessionPatch(turn_detection=TurnDetectionPatch(interrupt_response=False))
EAR = TurnDetectionPatch(type="server_vad")
ON_SPEECH = SessionPatch(overlap_policy="barge_in_on_speech")


@pytest.fixture
def judged(open_session: OpenSession) -> SessionDriver:
    """Under `adaptive` somebody has begun to speak, and may yet only acknowledge."""
    driver = open_session(msgspec.structs.replace(LISTENING, overlap_policy="adaptive"))
    answering(driver)
    driver.user_speaks(at_ms=900)
    driver.model_says(UserSpeechProgress(200, -20.0))
    assert decisions(driver) == [("listen", "short_ack")]
    return driver


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_may_interrupt_nothing_any_more_is_a_turn_after_the_answer(
    judged: SessionDriver, *, goes_on: bool
) -> None:
    judged.send(UpdateSession(session=LISTEN_ONLY))
    if goes_on:
        judged.model_says(UserSpeechProgress(400, -20.0))
        assert judged.last(SpeechStarted).audio_start_ms == 900
    judged.user_turn_ends("Stop, I have a question")

    assert decisions(judged)[1:] == [("listen", "policy_listen_only")]
    assert len(judged.of(SpeechStarted)) == len(judged.of(InputCommitted)) == 1
    assert judged.open_responses == ["resp_1"]
    judged.model_ends(key="answer_1")
    assert judged.open_responses == ["resp_2"]


def test_what_need_not_be_a_turn_any_more_interrupts_at_once(judged: SessionDriver) -> None:
    judged.send(UpdateSession(session=ON_SPEECH))
    judged.model_says(UserSpeechProgress(400, -20.0))

    assert decisions(judged)[1:] == [("barge_in", "server_vad_speech_started")]
    assert statuses(judged) == ["cancelled"]


def test_an_ear_that_begins_to_listen_hears_what_was_kept_before_what_comes(
    by_hand: SessionDriver,
) -> None:
    answering(by_hand)
    first, second = loud(500), loud(300)[::-1]
    by_hand.append(pcm=first)
    by_hand.send(UpdateSession(session=SessionPatch(turn_detection=EAR)))
    by_hand.append(pcm=second)
    assert by_hand.model.heard == quiet(500) + first + second

    by_hand.model_ends()
    assert by_hand.model.heard == quiet(500) + first + second
