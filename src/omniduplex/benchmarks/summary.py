"""Many measurements in six numbers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a sample; percentiles are interpolated between neighbours."""

    count: int
    p50: float
    p95: float
    p99: float
    min: float
    max: float


def summarise(values: Sequence[float | None]) -> Summary | None:
    """Summarise those that were measured; None when there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    p50, p95, p99 = map(float, np.percentile(known, (50, 95, 99)))
    return Summary(count=len(known), p50=p50, p95=p95, p99=p99, min=min(known), max=max(known))
