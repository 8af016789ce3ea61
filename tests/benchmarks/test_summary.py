from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omniduplex.benchmarks.summary import Summary, summarise


def test_percentiles_lie_between_neighbours() -> None:
    summary = summarise([4.0, 1.0, 3.0, 2.0, 5.0])
    assert summary == Summary(count=5, p50=3.0, p95=4.8, p99=4.96, min=1.0, max=5.0)


def test_what_was_not_measured_does_not_count() -> None:
    only = Summary(count=1, p50=2.0, p95=2.0, p99=2.0, min=2.0, max=2.0)
    assert summarise([None, 2.0, None]) == only
    assert summarise([None]) is None
    assert summarise([]) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_the_order_of_figures_is_that_of_their_names(values: list[float]) -> None:
    summary = summarise(values)
    assert summary is not None
    assert summary.min <= summary.p50 <= summary.p95 <= summary.p99 <= summary.max
