"""Silence for a model whose clock is its input: wire contract, section 8.4."""

from collections.abc import Iterator

import msgspec
import pytest
from tests.engine.duplex.session.contract import ContractWatcher
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver, loud, quiet
from tests.engine.duplex.session.scripted_model import ClockedPlugin

from omniduplex.engine.duplex.model_events import Listen
from omniduplex.engine.duplex.session.inputs import TimerFired
from omniduplex.protocol.duplex import (
    CreateResponse,
    DuplexSessionConfig,
    ListenDecision,
    ResponseDone,
    RetrieveItem,
    SpeechStarted,
)

UNIT = quiet(1000)
AUTO = msgspec.structs.replace(BY_HAND, auto_response=True)


class Clocked:
    """Opens sessions of a clocked model, whose events keep the contract."""

    def __init__(self) -> None:
        self.drivers: list[SessionDriver] = []

    def __call__(self, config: DuplexSessionConfig) -> SessionDriver:
        self.drivers.append(SessionDriver(config, plugin=ClockedPlugin()))
        return self.drivers[-1]


@pytest.fixture
def clocked() -> Iterator[Clocked]:
    opened = Clocked()
    yield opened
    for driver in opened.drivers:
        ContractWatcher().watch(driver.log)


def answering(driver: SessionDriver) -> SessionDriver:
    driver.says("Tell me a story")
    driver.send(CreateResponse())
    driver.model_audio(200, "Once ")
    driver.events()
    return driver


def units(driver: SessionDriver) -> int:
    """How many units of silence the model got since the last look, and nothing else."""
    got, driver.model.appends = driver.model.appends, []
    assert all(pcm == UNIT for pcm, _ in got)
    return len(got)


def test_a_unit_follows_each_period_after_the_last_append(clocked: Clocked) -> None:
    driver = clocked(BY_HAND)
    driver.append(300)
    driver.commit(response_create=True)
    driver.model.appends.clear()

    driver.passes(999)
    assert units(driver) == 0
    driver.passes(1)
    assert units(driver) == 1
    driver.passes(3000)
    assert units(driver) == 3


def test_an_answer_that_comes_long_after_the_last_append_goes_on_at_once(
    clocked: Clocked,
) -> None:
    driver = clocked(BY_HAND)
    driver.passes(10_000)
    answering(driver)
    driver.passes(0)
    assert units(driver) == 1
    driver.passes(999)
    assert units(driver) == 0
    driver.passes(1)
    assert units(driver) == 1


def test_what_the_user_sends_supersedes_silence(clocked: Clocked) -> None:
    driver = answering(clocked(LISTENING))
    driver.passes(900)
    driver.append(300)
    assert driver.model.appends.pop() == (loud(300), False)
    driver.passes(999)
    assert units(driver) == 0
    driver.passes(1)
    assert units(driver) == 1


def test_silence_waits_for_audio_that_is_being_converted(clocked: Clocked) -> None:
    driver = answering(clocked(LISTENING))
    driver.append(2500)
    driver.passes(5000)
    assert units(driver) == 0
    driver.converted()
    driver.model.appends.clear()
    driver.passes(1000)
    assert units(driver) == 1


def test_a_clock_that_is_late_gives_one_unit_and_starts_anew(clocked: Clocked) -> None:
    driver = answering(clocked(BY_HAND))
    driver.clock += 3.5
    driver.feed(TimerFired())
    assert units(driver) == 1
    driver.passes(999)
    assert units(driver) == 0
    driver.passes(1)
    assert units(driver) == 1


def test_a_clock_that_is_a_little_late_keeps_its_schedule(clocked: Clocked) -> None:
    driver = answering(clocked(BY_HAND))
    driver.clock += 1.4
    driver.feed(TimerFired())
    assert units(driver) == 1
    driver.passes(600)
    assert units(driver) == 1


def test_where_clients_end_turns_an_answer_is_kept_going_for_eight_units(
    clocked: Clocked,
) -> None:
    driver = answering(clocked(BY_HAND))
    driver.passes(60_000)
    assert units(driver) == 8
    assert driver.open_responses == ["resp_1"]

    driver.answers((200, "upon a time."))
    answering(driver)
    driver.passes(60_000)
    assert units(driver) == 8


def test_a_model_that_answers_by_itself_is_made_to_listen_and_then_ended(
    clocked: Clocked,
) -> None:
    driver = answering(clocked(AUTO))
    driver.passes(64_000)
    forced = [force_listen for _, force_listen in driver.model.appends]
    assert forced == [False] * 63 + [True]
    assert units(driver) == 64
    assert driver.open_responses == ["resp_1"]

    driver.events()
    driver.passes(1000)
    assert driver.kinds() == [
        "ListenDecision",
        "AudioDone",
        "TranscriptDone",
        "ContentPartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
        "RateLimitsUpdated",
        "OutputStopped",
    ]
    decision = driver.last(ListenDecision)
    facts = decision.response.metadata
    assert (facts.reason, facts.model_listen) == ("continuation_limit", False)
    assert decision.response_id == decision.response.id == "resp_1"
    done = driver.last(ResponseDone).response
    assert done.facts
    assert (done.status, done.facts.committed) == ("completed", False)
    assert driver.aborted == ["answer_1"]
    driver.passes(60_000)
    assert units(driver) == 0


def test_an_answer_that_was_ended_so_is_no_part_of_the_conversation(clocked: Clocked) -> None:
    driver = answering(clocked(AUTO))
    driver.passes(65_000)
    driver.events()
    driver.model_audio(200, "for ever and ever")
    assert driver.kinds() == []
    driver.send(RetrieveItem(item_id="item_resp_1"))
    assert driver.kinds() == ["ErrorEvent"]
    driver.send(CreateResponse())
    assert driver.said == [("user", "Tell me a story")]


def test_a_model_that_listens_when_it_is_told_ends_its_answer_itself(clocked: Clocked) -> None:
    driver = answering(clocked(AUTO))
    driver.passes(64_000)
    driver.answers((200, "the end."))
    driver.passes(10_000)
    done = driver.last(ResponseDone).response
    assert done.facts
    assert done.facts.committed is True
    assert driver.of(ListenDecision) == []


def test_a_turn_whose_end_is_to_be_heard_goes_on_in_silence(clocked: Clocked) -> None:
    driver = clocked(AUTO)
    driver.append(300)
    driver.model.appends.clear()
    driver.passes(64_000)
    assert units(driver) == 64

    # Nobody speaks, so that nothing is ended.
    driver.events()
    driver.passes(60_000)
    assert driver.kinds() == ["ListenDecision"]
    assert not driver.last(ListenDecision).response_id
    assert units(driver) == 0
    driver.append(300)
    driver.model.appends.clear()
    driver.passes(1000)
    assert units(driver) == 1


def test_nothing_is_fed_while_nothing_goes_on(clocked: Clocked) -> None:
    driver = clocked(AUTO)
    driver.append(pcm=quiet(300))
    driver.model_says(Listen())
    driver.model.appends.clear()
    driver.passes(60_000)
    assert units(driver) == 0


@pytest.mark.parametrize("config", [BY_HAND, AUTO, LISTENING], ids=["by hand", "auto", "vad"])
def test_a_model_with_a_clock_of_its_own_gets_no_silence(config: DuplexSessionConfig) -> None:
    driver = answering(SessionDriver(config))
    driver.passes(100_000)
    assert units(driver) == 0


def test_silence_of_its_own_moves_no_time_that_its_ear_tells(clocked: Clocked) -> None:
    driver = answering(clocked(LISTENING))
    driver.passes(2000)
    assert units(driver) == 2
    driver.append(500)
    driver.user_speaks(2100)
    assert driver.last(SpeechStarted).audio_start_ms == 100


def test_silence_of_its_own_moves_no_time_before_it(clocked: Clocked) -> None:
    driver = answering(clocked(AUTO))
    driver.append(500)
    driver.passes(3000)
    assert driver.model.heard.endswith(UNIT * 3)
    driver.append(400)
    # Only now the model tells of what it heard before that silence.
    driver.user_speaks(200)
    assert driver.last(SpeechStarted).audio_start_ms == 200
