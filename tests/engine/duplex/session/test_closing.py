"""When what is left of sessions is cleaned up, and how often that is tried."""

import math

import pytest

from omniduplex.engine.duplex.session.closing import FIRST_RETRY_S, ClosingSessions


class House:
    """Cleans up unless `broken`, and notes when it was asked to."""

    def __init__(self, longest_pause_s: float = 5.0) -> None:
        self.now = 100.0
        self.broken = True
        self.asked: list[tuple[float, str]] = []
        self.closing = ClosingSessions(
            self._clean, clock=lambda: self.now, longest_pause_s=longest_pause_s
        )

    def _clean(self, session_id: str) -> None:
        self.asked.append((self.now, session_id))
        if self.broken:
            raise OSError("the stage does not answer")

    def passes_to_the_next(self) -> float:
        """How long (s) it took until the next attempts were due; they are made."""
        pause_s, self.now = self.closing.next_at - self.now, self.closing.next_at
        self.closing.retry()
        return pause_s


def test_what_is_cleaned_up_at_once_is_not_held() -> None:
    house = House()
    house.broken = False
    assert house.closing.end("a")
    assert len(house.closing) == 0
    assert house.closing.next_at == math.inf


@pytest.mark.parametrize("longest_s", [0.05, 1.0, 5.0])
def test_pauses_grow_to_the_longest_and_attempts_go_on(longest_s: float) -> None:
    house = House(longest_s)
    assert not house.closing.end("a")
    pauses = [house.passes_to_the_next() for _ in range(10)]
    expected = [min(FIRST_RETRY_S * 2**n, longest_s) for n in range(10)]
    assert pauses == pytest.approx(expected)
    assert len(house.closing) == 1

    house.broken = False
    house.passes_to_the_next()
    assert len(house.closing) == 0
    assert house.closing.next_at == math.inf


def test_nothing_is_tried_before_it_is_due() -> None:
    house = House()
    house.closing.end("a")
    house.now += FIRST_RETRY_S / 2
    house.closing.end("b")
    house.closing.retry()
    assert [name for _, name in house.asked] == ["a", "b"]
    house.passes_to_the_next()
    assert [name for _, name in house.asked] == ["a", "b", "a"]


def test_the_death_of_a_worker_makes_its_sessions_due() -> None:
    house = House()
    house.closing.end("a")
    house.closing.end("b")
    assert house.closing.stage_lost("b")
    assert not house.closing.stage_lost("c")
    house.broken = False
    house.closing.retry()
    assert len(house.closing) == 1
    assert house.asked[-1] == (house.now, "b")


def test_the_log_tells_of_attempts_only_while_their_pauses_grow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    house = House(longest_pause_s=1.0)
    house.closing.end("a")
    for _ in range(50):
        house.passes_to_the_next()
    assert len(caplog.records) == 1 + 4
    assert all("session a" in record.getMessage() for record in caplog.records)
