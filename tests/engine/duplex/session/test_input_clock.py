"""A model's clock and its client's, held against a list of every millisecond."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.engine.duplex.session.input_clock import MAX_SPANS, InputClock


class Milliseconds:
    """The same clock, which keeps for each ms of the model where in the client's audio it is."""

    def __init__(self) -> None:
        self.clock = InputClock()
        self.heard = 0
        self.began: list[int] = []
        self.ended: list[int] = []

    def sends(self, ms: int, *, kept: int = 0) -> None:
        """The client's next audio, behind `kept` ms that the model gets once more."""
        self.clock.heard(ms)
        self.heard += ms
        self.clock.given(kept + ms)
        for at in range(self.heard - kept - ms, self.heard):
            self.began.append(at)
            self.ended.append(at + 1)

    def is_fed(self, ms: int) -> None:
        """Silence that the client did not send."""
        self.clock.fed(ms)
        self.began += [self.heard] * ms
        self.ended += [self.heard] * ms


@given(
    st.lists(
        st.tuples(st.just("sends"), st.integers(0, 40), st.integers(0, 60))
        | st.tuples(st.just("fed"), st.integers(1, 40), st.just(0)),
        max_size=30,
    )
)
def test_every_moment_is_where_its_sound_was_sent(story: list[tuple[str, int, int]]) -> None:
    truth = Milliseconds()
    for what, ms, kept in story:
        if what == "fed":
            truth.is_fed(ms)
        else:
            truth.sends(ms, kept=min(kept, truth.heard))
    model_ms = len(truth.began)
    assert [truth.clock.began_at(ms) for ms in range(model_ms)] == truth.began
    assert [truth.clock.ended_at(ms + 1) for ms in range(model_ms)] == truth.ended


def test_what_is_still_to_come_follows_what_is_here() -> None:
    clock = InputClock()
    assert clock.began_at(70) == 70
    clock.heard(100)
    clock.given(100)
    clock.fed(1000)
    assert clock.ended_at(1150) == 150


def test_nothing_was_before_the_beginning() -> None:
    clock = InputClock()
    clock.heard(100)
    clock.given(300)
    assert clock.began_at(0) == clock.ended_at(50) == 0
    assert clock.ended_at(300) == 100


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 44_100])
def test_an_hour_of_a_stream_is_one_span(rate_hz: int) -> None:
    clock = InputClock()
    samples = rate_hz // 50 + 1
    frames = 3600 * rate_hz // samples
    length_ms = samples * 1000 / rate_hz
    for _ in range(frames):
        clock.heard(length_ms)
        clock.given(length_ms)
    assert len(clock._spans) == 1
    assert clock.began_at(3_000_000) == 3_000_000


def test_what_is_kept_is_bounded_and_the_newest() -> None:
    truth = Milliseconds()
    for _ in range(MAX_SPANS):
        truth.sends(20)
        truth.is_fed(5)
    assert len(truth.clock._spans) == MAX_SPANS
    newest = range(len(truth.began) - MAX_SPANS // 2 * 25, len(truth.began))
    assert [truth.clock.began_at(ms) for ms in newest] == truth.began[newest.start :]
