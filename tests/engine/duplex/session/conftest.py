from collections.abc import Callable, Iterator

import pytest
from tests.engine.duplex.session.contract import ContractWatcher
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver
from tests.engine.duplex.session.scripted_turns import ScriptedTurns

from omniduplex.protocol.duplex import DuplexSessionConfig

OpenSession = Callable[[DuplexSessionConfig], SessionDriver]


@pytest.fixture
def turns() -> ScriptedTurns | None:
    """What answers without a session: nothing, where a test does not say otherwise."""
    return None


@pytest.fixture
def open_session(turns: ScriptedTurns | None) -> Iterator[OpenSession]:
    """Opens sessions, whose events must keep the contract whatever the test does."""
    drivers: list[SessionDriver] = []

    def opened(config: DuplexSessionConfig) -> SessionDriver:
        drivers.append(SessionDriver(config, turns=turns))
        return drivers[-1]

    yield opened
    for driver in drivers:
        ContractWatcher().watch(driver.log)


@pytest.fixture
def driver(open_session: OpenSession) -> SessionDriver:
    """The server ends turns and answers them."""
    return open_session(LISTENING)


@pytest.fixture
def by_hand(open_session: OpenSession) -> SessionDriver:
    """The client ends turns and asks for answers."""
    return open_session(BY_HAND)
