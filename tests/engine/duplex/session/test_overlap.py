"""The user speaks while an answer is made or played: wire contract, section 8."""

from typing import Any

import msgspec
import numpy as np
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver
from tests.engine.duplex.session.scripted_model import ScriptedPlugin

from omniduplex.engine.duplex.session.effects import DropQueuedAudio
from omniduplex.protocol.duplex import (
    AckPlayback,
    InputCommitted,
    OutputCleared,
    OverlapDecision,
    ResponseDone,
)

LISTEN_ONLY = msgspec.structs.replace(LISTENING, overlap_policy="listen_only")


def test_b01_speech_stops_the_answer_at_once(driver: SessionDriver) -> None:
    driver.user_turn("Tell me a story")
    driver.model_audio(2000, "Once upon a time there was a king. ")
    driver.events()
    driver.append(40)
    driver.user_speaks(at_ms=900)
    driver.model_audio(2000, "He had a castle.")

    assert driver.kinds() == [
        "SpeechStarted",
        "OverlapDecision",
        "AudioDone",
        "TranscriptDone",
        "ContentPartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
        "RateLimitsUpdated",
    ]
    decision = driver.last(OverlapDecision)
    assert (decision.action, decision.reason) == ("barge_in", "server_vad_speech_started")
    details = driver.last(ResponseDone).response.status_details
    assert details
    assert decision.metadata
    assert details.reason == decision.metadata.cancel_reason == "turn_detected"
    assert driver.session.public_object().turn_state == "user_speaking"

    driver.user_turn_ends("Stop, a shorter one")
    assert driver.said[-1] == ("user", "Stop, a shorter one")
    assert driver.open_responses == ["resp_2"]


def test_the_interrupting_audio_is_not_lost(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(500, "Hello")
    driver.append(300)
    heard = driver.model.heard
    driver.user_speaks()

    assert driver.model.heard == heard
    assert driver.model.clears == 0


def test_b39_a_noise_before_the_first_sound_of_an_answer_leaves_it_alone(
    driver: SessionDriver,
) -> None:
    driver.user_turn("Think hard")
    driver.append(100)
    driver.model_audio(200, "Well.")
    driver.model_ends()

    assert driver.last(ResponseDone).response.status == "completed"


def test_speech_over_a_finished_answer_cuts_what_is_not_played(driver: SessionDriver) -> None:
    driver.user_turn("Count")
    driver.answers((1000, "One two three four five six."))
    driver.passes(500)
    driver.events()
    driver.user_speaks()

    assert driver.kinds() == ["SpeechStarted", "OutputCleared"]
    assert driver.last(OutputCleared).response_id == "resp_1"
    assert DropQueuedAudio("resp_1") in driver.effects
    driver.user_turn_ends("Enough")
    assert driver.said == [("user", "Count"), ("assistant", "One two three"), ("user", "Enough")]


def test_an_answer_that_its_client_has_to_report_is_in_progress_until_then(
    open_session: OpenSession,
) -> None:
    """Wire contract, sections 7.2 and 8.1: speech over it is judged."""
    driver = open_session(msgspec.structs.replace(LISTENING, playback_commit_policy="ack_only"))
    driver.user_turn("Count")
    driver.answers((1000, "One two three four five six."))
    driver.events()
    driver.user_speaks()

    assert driver.kinds() == ["SpeechStarted", "OverlapDecision", "OutputCleared"]
    assert driver.last(OverlapDecision).action == "barge_in"


def test_b10_a_client_that_acknowledges_is_told_to_flush_and_believed(
    driver: SessionDriver,
) -> None:
    driver.user_turn("Count")
    driver.model_audio(2000, "One two three four five six seven eight.")
    driver.send(AckPlayback(played_ms=500))
    epoch = driver.session.epoch
    driver.model_ends()
    driver.user_speaks()
    assert driver.last(OutputCleared).response_id == "resp_1"
    assert driver.session.epoch == epoch + 1

    driver.user_turn_ends("Enough")
    assert driver.said[1] == ("assistant", "One two")


def test_an_answer_that_was_played_to_its_end_is_not_cut(driver: SessionDriver) -> None:
    driver.user_turn("Count")
    driver.answers((1000, "One two three."))
    driver.passes(1001)
    driver.user_turn("And on")

    assert driver.of(OutputCleared) == []
    assert driver.said[1] == ("assistant", "One two three.")


def test_b06_listen_only_lets_the_answer_go_on(open_session: OpenSession) -> None:
    driver = open_session(LISTEN_ONLY)
    driver.user_turn("Tell me a story")
    driver.model_audio(200, "Once ")
    driver.events()
    driver.user_speaks()
    driver.user_turn_ends("")
    driver.model_audio(200, "upon a time.")
    driver.model_ends()

    assert driver.kinds()[:4] == [
        "SpeechStarted",
        "OverlapDecision",
        "SpeechStopped",
        "ListenDecision",
    ]
    decision = driver.last(OverlapDecision)
    assert (decision.action, decision.reason) == ("listen", "policy_listen_only")
    assert [done.response.status for done in driver.of(ResponseDone)] == ["completed"]
    assert len(driver.prompts) == 1


def test_a_turn_spoken_over_an_answer_is_answered_after_it(open_session: OpenSession) -> None:
    driver = open_session(LISTEN_ONLY)
    driver.user_turn("First")
    driver.model_audio(200, "One.")
    driver.user_turn("Second")
    facts = driver.last(InputCommitted).event
    assert facts
    assert facts.response_create_deferred is True
    assert driver.open_responses == ["resp_1"]

    driver.model_ends(key="answer_1")
    assert driver.open_responses == ["resp_2"]
    assert driver.said == [("user", "First"), ("assistant", "One."), ("user", "Second")]


def test_several_turns_over_one_answer_are_answered_together(open_session: OpenSession) -> None:
    driver = open_session(LISTEN_ONLY)
    driver.user_turn("First")
    driver.user_turn("Second")
    driver.user_turn("Third")
    driver.answers((100, "One."))
    driver.answers((100, "The rest."))

    assert len(driver.of(ResponseDone)) == 2
    assert driver.open_responses == []


def test_a_model_that_cannot_be_interrupted_goes_on(open_session: OpenSession) -> None:
    plugin = ScriptedPlugin()
    plugin.can_barge_in = False
    driver = SessionDriver(LISTENING, plugin=plugin)
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello")
    driver.user_speaks()
    assert driver.last(OverlapDecision).action == "listen"
    driver.append(100, force_barge_in=True)
    assert driver.open_responses == ["resp_1"]


@pytest.mark.parametrize(
    "hints", [{"force_barge_in": True}, *({"overlap_action": a} for a in ("barge_in", "cancel"))]
)
def test_an_append_may_interrupt_and_is_heard(driver: SessionDriver, hints: dict[str, Any]) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello")
    driver.append(100, **hints)

    details = driver.last(ResponseDone).response.status_details
    assert details
    assert details.reason == "barge_in"
    assert driver.model.heard


def test_an_append_that_is_refused_interrupts_nothing(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello")
    driver.append(100, force_barge_in=True, format="mp3", event_id="e1")

    assert (driver.error().code, driver.error().event_id) == ("unsupported_audio_format", "e1")
    assert driver.open_responses == ["resp_1"]


def test_an_append_of_no_sound_interrupts_nothing(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "Hello")
    not_finite = np.full(100, np.nan, np.float32).tobytes()
    driver.append(pcm=not_finite, force_barge_in=True, format="pcm_f32le")

    assert driver.error().code == "bad_audio"
    assert driver.of(OverlapDecision) == []
    assert driver.open_responses == ["resp_1"]
