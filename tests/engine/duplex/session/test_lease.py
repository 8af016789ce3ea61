"""The lease: grace, idle time, the longest life, and who may resume."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.duplex.session.driver import LISTENING, SessionDriver

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.session.inputs import Tick
from omniduplex.engine.duplex.session.lease import DuplexLease
from omniduplex.protocol.duplex import (
    DuplexError,
    Heartbeat,
    SessionClosed,
    SessionExpired,
    SessionExpiring,
)


def lease(**limits: float | None) -> DuplexLease:
    return DuplexLease(0.0, DuplexSessionRuntimeConfig(**limits))  # type: ignore[arg-type]


def conflict(generation: int, held: DuplexLease) -> str:
    with pytest.raises(DuplexError) as refused:
        held.detach(generation, 1.0)
    return refused.value.code


def test_a_detached_session_ends_after_its_grace() -> None:
    held = lease(disconnect_grace_s=2.0, idle_ttl_s=None)
    assert held.ending(300.0, busy=False) is None
    held.detach(0, 10.0)
    assert held.ending(300.0, busy=True) == ("disconnect_grace_expired", 12.0)


def test_detaching_twice_does_not_lengthen_the_grace() -> None:
    held = lease(disconnect_grace_s=2.0, idle_ttl_s=None)
    held.detach(0, 10.0)
    held.detach(0, 11.0)
    assert held.ending(300.0, busy=False) == ("disconnect_grace_expired", 12.0)


def test_a_resume_ends_the_grace_and_starts_a_generation() -> None:
    held = lease(disconnect_grace_s=2.0, idle_ttl_s=None)
    held.detach(0, 10.0)
    assert held.resume(0, "c1", 11.0) == 1
    assert held.ending(300.0, busy=False) is None
    assert conflict(0, held) == "session_resume_conflict"


def test_the_same_resume_asked_again_is_answered_the_same() -> None:
    held = lease()
    assert [held.resume(0, "c1", 1.0), held.resume(0, "c1", 2.0)] == [1, 1]
    assert held.generation == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd")), max_size=30))
def test_of_resumes_that_name_one_generation_one_wins(tries: list[tuple[int, str]]) -> None:
    held = lease()
    winners: dict[int, str] = {}
    for generation, control_id in tries:
        before = held.generation
        try:
            made = held.resume(generation, control_id, 1.0)
        except DuplexError:
            assert generation != before
            continue
        assert winners.setdefault(made, control_id) == control_id
        assert held.generation in (before, before + 1)


def test_idle_time_is_the_smaller_of_what_client_and_deployment_want() -> None:
    held = lease(idle_ttl_s=60.0)
    assert held.ending(300.0, busy=False) == ("idle_ttl_expired", 60.0)
    assert held.ending(5.0, busy=False) == ("idle_ttl_expired", 5.0)
    assert held.ending(5.0, busy=True) is None


def test_an_end_is_told_beforehand_once_and_again_after_new_life() -> None:
    driver = SessionDriver(LISTENING)
    driver.passes(291_000)
    driver.feed(Tick())
    driver.feed(Tick())
    assert [type(event) for event in driver.events()] == [SessionExpiring]
    driver.send(Heartbeat())
    driver.passes(291_000)
    driver.feed(Tick())
    warning = driver.last(SessionExpiring)
    assert (warning.reason, warning.time_left_ms) == ("idle_ttl_expired", 9000)
    driver.passes(9_000)
    driver.feed(Tick())
    assert driver.last(SessionExpired).reason == "idle_ttl_expired"
    assert driver.session.closed


def test_the_longest_life_ends_with_a_closure_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = DuplexSessionRuntimeConfig(max_session_s=10.0, expiry_warning_s=2.0)
    monkeypatch.setattr("tests.engine.duplex.session.driver.LIMITS", limits)
    driver = SessionDriver(LISTENING)
    for _ in range(10):
        driver.passes(1_000)
        driver.send(Heartbeat())
        driver.feed(Tick())
    told = [event for event in driver.events() if isinstance(event, SessionExpiring)]
    assert [event.reason for event in told] == ["session_expired"]
    assert driver.last(SessionClosed).reason == "session_expired"


def test_an_idle_time_that_would_end_sooner_does_not_hide_the_end_of_the_longest_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = DuplexSessionRuntimeConfig(idle_ttl_s=4.0, max_session_s=12.0, expiry_warning_s=5.0)
    monkeypatch.setattr("tests.engine.duplex.session.driver.LIMITS", limits)
    driver = SessionDriver(LISTENING)
    for _ in range(3):
        driver.passes(2_500)
        driver.send(Heartbeat())
        driver.feed(Tick())
    told = driver.last(SessionExpiring)
    assert (told.reason, told.time_left_ms) == ("session_expired", 4500)


@given(
    st.lists(st.sampled_from(["touch", "look", "detach", "resume"]), max_size=60),
    st.sampled_from([1.0, 3.0]),
    st.booleans(),
)
def test_each_end_is_told_once_whatever_happens_meanwhile(
    happens: list[str], step_s: float, busy: bool
) -> None:
    held = lease(idle_ttl_s=20.0, disconnect_grace_s=12.0, max_session_s=40.0, expiry_warning_s=10)
    told: list[tuple[str, float]] = []
    for number, what in enumerate(happens):
        now = step_s * number
        match what:
            case "touch":
                held.touch(now)
            case "detach":
                held.detach(held.generation, now)
            case "resume":
                held.resume(held.generation, f"c{number}", now)
        endings = held.endings(300.0, busy=busy)
        assert held.ending(300.0, busy=busy) == endings[0]
        told += [ending for ending in endings if held.warn_once(*ending, now)]
        look = held.next_look_at(300.0, busy=busy)
        assert look is not None
        # Who looks when he is told to has either told an end, or nothing to tell yet.
        assert look in [at for reason, at in endings if (reason, at) in told] or look > now
    assert len(told) == len(set(told))
    assert [reason for reason, _ in told].count("session_expired") <= 1
