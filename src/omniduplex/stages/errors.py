"""What can go wrong between the engine and a stage.

StageError
├── StageStartError
└── StageUnavailable
    └── StageOverloaded
"""

from __future__ import annotations


class StageError(Exception):
    """Any failure of a stage that its user has to expect."""


class StageStartError(StageError):
    """The worker did not become ready; the message is the worker's own where it has one."""


class StageUnavailable(StageError):  # noqa: N818 - a state of the stage, not a fault of the caller
    """The stage takes nothing now."""


class StageOverloaded(StageUnavailable):
    """As many inputs as the stage may have wait for it already."""
