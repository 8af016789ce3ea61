"""Silence while nothing goes on: wire contract, section 7.5; each stretch of it is told once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver, loud, quiet

from omniduplex.protocol.duplex import (
    ClearInput,
    CreateResponse,
    DuplexSessionConfig,
    ListenDecision,
    OverlapDecision,
    SessionPatch,
    UpdateSession,
)


def told(driver: SessionDriver) -> int:
    """How often the client was told since it last looked."""
    return driver.kinds().count("ListenDecision")


def silence(driver: SessionDriver, appends: int = 5) -> None:
    for _ in range(appends):
        driver.append(pcm=quiet(100))


def test_silence_while_nothing_goes_on_is_told_once(by_hand: SessionDriver) -> None:
    silence(by_hand)

    assert by_hand.kinds() == ["ListenDecision"]
    decision = by_hand.last(ListenDecision)
    assert (decision.response_id, decision.response.id) == (None, UNSET)
    assert decision.response.metadata.reason == "silence_or_noise"
    assert decision.response.metadata.model_listen is UNSET


@pytest.mark.parametrize("hints", [{"is_speech": False}, {"speech_probability": 0.1}])
def test_so_is_sound_that_its_client_calls_no_speech(
    by_hand: SessionDriver, hints: dict[str, Any]
) -> None:
    by_hand.append(pcm=loud(100), **hints)
    by_hand.append(pcm=loud(100), **hints)

    assert told(by_hand) == 1


def test_a_pause_in_a_turn_is_not_told(by_hand: SessionDriver) -> None:
    by_hand.append(pcm=loud(300))
    silence(by_hand)

    assert told(by_hand) == 0


def test_silence_goes_on_behind_a_clear(by_hand: SessionDriver) -> None:
    silence(by_hand)
    by_hand.send(ClearInput())
    silence(by_hand)

    assert told(by_hand) == 1


def test_speech_that_was_cleared_ends_the_silence_before_it(by_hand: SessionDriver) -> None:
    silence(by_hand)
    by_hand.append(pcm=loud(300))
    by_hand.send(ClearInput())
    silence(by_hand)

    assert told(by_hand) == 2


@pytest.mark.parametrize("appends_between", [0, 1])
def test_behind_an_answer_silence_is_told_again(
    by_hand: SessionDriver, appends_between: int
) -> None:
    silence(by_hand)
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    by_hand.model_audio(200, "Hello.")
    assert told(by_hand) == 1
    silence(by_hand, appends_between)
    assert told(by_hand) == 0
    assert len(by_hand.of(OverlapDecision)) == appends_between
    by_hand.model_ends()
    silence(by_hand)

    assert told(by_hand) == 1


def test_a_silent_commit_has_its_own_decision(by_hand: SessionDriver) -> None:
    silence(by_hand)
    by_hand.commit()

    assert told(by_hand) == 2


@pytest.mark.parametrize(
    "config",
    [LISTENING, msgspec.structs.replace(BY_HAND, auto_response=True)],
    ids=["server_vad", "auto_response"],
)
def test_where_the_client_ends_no_turns_it_is_told_of_none(
    open_session: OpenSession, config: DuplexSessionConfig
) -> None:
    driver = open_session(config)
    silence(driver)
    assert told(driver) == 0


def test_who_takes_the_turns_over_is_told_from_then_on(open_session: OpenSession) -> None:
    driver = open_session(LISTENING)
    silence(driver)
    driver.send(UpdateSession(session=SessionPatch(turn_detection=None)))
    silence(driver)

    assert told(driver) == 1
