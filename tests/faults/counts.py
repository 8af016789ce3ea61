"""How often chance is tried: as often as `FAULTS` says (`make soak`), or as CI has time for."""

from __future__ import annotations

import os


def times(usually: int) -> int:
    """The number of attempts; a larger one than usual is a soak."""
    return int(os.environ.get("FAULTS", usually))


IS_SOAK = "FAULTS" in os.environ
PATIENCE_S = 7200 if IS_SOAK else 240
"""How long one test may take."""
