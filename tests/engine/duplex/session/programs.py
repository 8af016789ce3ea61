"""What programs of the session's state machines share: how many, for whom, and how they end."""

import os

import msgspec
from hypothesis import HealthCheck, Phase, settings
from tests.engine.duplex.session.driver import LISTENING

from omniduplex.engine.duplex.session.inputs import CloseRequest, OutputOverflow, StageLost
from omniduplex.protocol.duplex import CloseSession, Dialect, TurnDetection

PHONE = msgspec.structs.replace(
    LISTENING, dialect=Dialect.OPENAI, turn_detection=TurnDetection(idle_timeout_ms=600)
)
"""A stock client that is asked whether it is still there."""

ENDS = (
    CloseSession(),
    CloseRequest(reason="idle_ttl_expired", expired=True),
    StageLost(0, "died"),
    OutputOverflow(),
)
"""What a session ends by: its client, its idleness, its model, its reader."""


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
