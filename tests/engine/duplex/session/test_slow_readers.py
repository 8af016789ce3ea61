"""Readers that are too slow lose their session, or answers alone; nothing is told by halves."""

import pytest
from tests.engine.duplex.session.driver import kinds
from tests.engine.duplex.session.shell import read
from tests.engine.duplex.session.shelled import Shell, speaking

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.model_events import ResponseEnded, UserTurnEnded
from omniduplex.engine.duplex.session.inputs import StageLost
from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexEvent,
    ErrorEvent,
    Heartbeat,
    ResponseDone,
    SessionClosed,
    SessionExpired,
)


@pytest.mark.parametrize("room", range(8))
def test_an_overflow_amid_an_ending_leaves_one_ending(room: int) -> None:
    """Seven events end an answer, the sixth is `response.done`."""
    shell = speaking()
    shell.pad(room)
    shell.model_says(ResponseEnded(shell.model.keys[-1]))
    events = read(shell.link)

    done = [event for event in events if isinstance(event, ResponseDone)]
    assert len(done) == 1
    overflowed = room < 7
    lost_the_ending = room < 5  # as the sixth it still finds room in the reserve
    assert shell.ended == (["output_backpressure"] if overflowed else [])
    if not overflowed:
        assert done[0].response.status == "completed"
        return
    assert isinstance(events[-1], SessionClosed)
    assert events[-1].reason == "output_backpressure"
    errors = [event for event in events if isinstance(event, ErrorEvent)]
    assert [error.error.code for error in errors] == ["output_backpressure"]
    assert done[0].response.status == ("failed" if lost_the_ending else "completed")
    assert len(done[0].response.output) == 1
    if lost_the_ending:
        assert kinds(events)[-3:] == ["ErrorEvent", "ResponseDone", "SessionClosed"]


@pytest.mark.parametrize("room", range(12))
def test_an_overflow_amid_an_opening_ends_only_what_was_announced(room: int) -> None:
    shell = Shell()
    read(shell.link)
    shell.pad(room)
    shell.model_says(UserTurnEnded(100, "Hi"))
    events = read(shell.link)

    names = kinds(events)
    assert names.count("ResponseCreated") == names.count("ResponseDone") or room >= 10
    if shell.ended:
        assert names[-1] == "SessionClosed"
        assert names.count("ErrorEvent") == 1


@pytest.mark.parametrize("room", range(9))
def test_a_lost_stage_closes_a_full_session_too(room: int) -> None:
    shell = speaking()
    shell.pad(room)
    shell.runner.post(StageLost(0, "died"))

    events = read(shell.link)
    assert isinstance(events[-1], SessionExpired)
    assert kinds(events).count("ResponseDone") == 1
    assert shell.ended == ["request_cleanup"]


def test_a_reader_that_keeps_up_loses_nothing() -> None:
    shell = speaking()
    for _ in range(100):
        shell.audio()
        assert kinds(read(shell.link)) == ["AudioDelta", "TranscriptDelta"]
    assert shell.ended == []


# Readers that are too slow, where that costs them answers alone


def forgiving(max_events: int) -> Shell:
    """A session of which all events were read."""
    limits = DuplexSessionRuntimeConfig(
        max_pending_output_events_per_session=max_events, output_overflow="fail_response"
    )
    shell = Shell(limits=limits)
    read(shell.link)
    return shell


def answer(shell: Shell, words: str, pieces: int = 10) -> None:
    shell.model_says(UserTurnEnded(100, words))
    for _ in range(pieces):
        shell.audio()
    shell.model_says(ResponseEnded(shell.model.keys[-1]))


# What has to be told of an answer even if nobody hears it, and of what is no answer.
ESSENTIAL = (
    "ItemAdded",
    "ItemDone",
    "InputCommitted",
    "ResponseCreated",
    "OutputItemAdded",
    "OutputItemDone",
    "ResponseDone",
    "RateLimitsUpdated",
    "HeartbeatAck",
)


def essential(events: list[DuplexEvent]) -> list[str]:
    return [name for name in kinds(events) if name in ESSENTIAL]


def statuses(events: list[DuplexEvent]) -> list[str]:
    return [event.response.status for event in events if isinstance(event, ResponseDone)]


@pytest.mark.parametrize("max_events", range(45, 70))
def test_a_slow_reader_misses_pieces_of_answers_and_nothing_else(max_events: int) -> None:
    """Two turns and their answers are some 40 events and 40 pieces."""
    told = []
    for shell in (forgiving(1000), forgiving(max_events)):
        answer(shell, "Hi")
        shell.runner.post(Heartbeat())
        answer(shell, "Again")
        told.append(read(shell.link))
    whole, missed = told

    assert shell.ended == []
    assert essential(missed) == essential(whole)
    assert statuses(missed)[-1] == "failed"
    assert kinds(missed).count("ErrorEvent") == statuses(missed).count("failed")


def test_an_unread_answer_makes_room_when_none_is_under_way() -> None:
    shell = forgiving(60)
    answer(shell, "Hi")
    for _ in range(35):
        shell.runner.post(Heartbeat())
    events = read(shell.link)

    assert shell.ended == []
    assert statuses(events) == ["failed"]
    assert kinds(events).count("HeartbeatAck") == 35
    assert kinds(events).count("ErrorEvent") == 1
    assert not any(isinstance(event, AudioDelta) for event in events)
    answer(shell, "Again")
    assert [message.text for message in shell.model.prompts[-1].messages] == ["Hi", "Again"]
    assert statuses(read(shell.link)) == ["completed"]


def test_an_answer_under_way_is_stopped_when_nobody_reads_it() -> None:
    shell = forgiving(40)
    shell.model_says(UserTurnEnded(100, "Hi"))
    for _ in range(40):
        shell.audio()
    events = read(shell.link)

    assert shell.ended == []
    assert statuses(events) == ["failed"]
    assert shell.model.keys[-1] in shell.port.aborted
    answer(shell, "Again")
    assert statuses(read(shell.link)) == ["completed"]


def test_what_is_no_answer_and_does_not_fit_ends_the_session_all_the_same() -> None:
    shell = forgiving(40)
    answer(shell, "Hi", pieces=2)
    for _ in range(40):
        shell.runner.post(Heartbeat())
    events = read(shell.link)

    assert shell.ended == ["output_backpressure"]
    assert kinds(events)[-2:] == ["ErrorEvent", "SessionClosed"]
    assert statuses(events) == ["failed"]
