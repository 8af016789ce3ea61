"""What a client appends over an answer where an ear listens too: that judges what is speech."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import LISTENING, SessionDriver, loud, quiet
from tests.engine.duplex.session.over_an_answer import TO_THE_END, answering, decisions
from tests.engine.duplex.session.scripted_model import ScriptedPlugin

from omniduplex.protocol.duplex import AckPlayback, OverlapDecision

BY_ITSELF = msgspec.structs.replace(LISTENING, auto_response=True)
ADAPTIVE = msgspec.structs.replace(BY_ITSELF, overlap_policy="adaptive")
ACK_ONLY = msgspec.structs.replace(LISTENING, playback_commit_policy="ack_only")
SOFT = bytes([40, 0]) * 1600
"""100 ms of sound below the floor of speech, such as the hiss of an s."""


def test_what_is_to_be_listened_to_interrupts_nothing(open_session: OpenSession) -> None:
    driver = answering(open_session(BY_ITSELF))
    driver.append(300, force_listen=True)

    assert decisions(driver) == [("listen", "auto_response_continuous")]
    assert driver.open_responses == ["resp_1"]
    assert driver.model.appends[-1] == (loud(300), True)


@pytest.mark.parametrize("config", [LISTENING, BY_ITSELF, ADAPTIVE])
def test_what_a_client_says_of_its_sound_counts_under_any_policy(
    config: object, open_session: OpenSession
) -> None:
    assert isinstance(config, type(LISTENING))
    driver = answering(open_session(config))
    driver.append(300, overlap_action="continue")

    assert decisions(driver) == [("listen", "client_overlap_action")]
    assert driver.model.heard == quiet(300)


def test_the_ear_hears_the_soft_parts_of_an_utterance_too(driver: SessionDriver) -> None:
    driver.user_speaks()
    answering(driver)
    for pcm in (loud(200), SOFT, loud(200)):
        driver.append(pcm=pcm)
    driver.model_ends()
    driver.append(200)

    assert driver.model.heard == loud(200) + SOFT + loud(200) + loud(200)
    assert decisions(driver) == [("listen", "server_vad_utterance_active")]


def test_the_ear_hears_what_cannot_interrupt() -> None:
    plugin = ScriptedPlugin()
    plugin.can_barge_in = False
    unstoppable = SessionDriver(LISTENING, plugin=plugin)
    protected = SessionDriver(LISTENING)
    answering(unstoppable)
    answering(protected, TO_THE_END)
    for driver in (unstoppable, protected):
        driver.append(pcm=SOFT, force_barge_in=True)

    assert decisions(unstoppable) == [("listen", "barge_in_unsupported")]
    assert decisions(protected) == [("listen", "response_uninterruptible")]
    assert unstoppable.model.heard == protected.model.heard == SOFT


def test_each_interruption_is_told(driver: SessionDriver) -> None:
    """Of what only plays, and of the next answer, which is being made."""
    answering(driver).model_ends()
    driver.append(100, force_barge_in=True)
    answering(driver)
    driver.append(100, force_barge_in=True)
    assert decisions(driver) == [("barge_in", "client_force_barge_in")] * 2


def test_an_interruption_that_is_large_interrupts_once(driver: SessionDriver) -> None:
    """The answer to what was said before it is begun while it is converted."""
    answering(driver)
    driver.append(2500, force_barge_in=True)
    driver.user_turn("And then?")
    driver.converted()

    assert decisions(driver) == [("barge_in", "client_force_barge_in")]
    assert driver.open_responses == ["resp_2"]
    assert driver.model.heard == loud(2500)


def test_speech_over_what_only_plays_does_not_count_for_the_next_answer(
    open_session: OpenSession,
) -> None:
    driver = open_session(ACK_ONLY)
    driver.user_speaks()
    answering(driver).model_ends()
    driver.append(300)
    driver.send(AckPlayback(played_ms=2000))
    answering(driver)
    driver.append(200)

    told = [event.metadata for event in driver.of(OverlapDecision)]
    assert [facts and facts.overlap_ms for facts in told] == [300, 200]
