"""How many programs a state machine of the session tries, and how."""

import os

import msgspec
from hypothesis import HealthCheck, Phase, settings
from tests.engine.duplex.session.driver import LISTENING

from omniduplex.protocol.duplex import Dialect, TurnDetection

PHONE = msgspec.structs.replace(
    LISTENING, dialect=Dialect.OPENAI, turn_detection=TurnDetection(idle_timeout_ms=600)
)
"""A stock client that is asked whether it is still there."""


def programs(*, desk: int, ci: int) -> settings:
    """The same programs each time: so many at a desk, and so many in continuous integration."""
    return settings(
        max_examples=ci if os.environ.get("CI") else desk,
        stateful_step_count=30,
        deadline=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
