from collections.abc import Callable, Iterator

import pytest
from tests.engine.duplex.session.contract import ContractWatcher
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver

from omniduplex.protocol.duplex import DuplexSessionConfig

OpenSession = Callable[[DuplexSessionConfig], SessionDriver]


@pytest.fixture
def open_session() -> Iterator[OpenSession]:
    """Opens sessions, whose events must keep the contract whatever the test does."""
    drivers: list[SessionDriver] = []

    def opened(config: DuplexSessionConfig) -> SessionDriver:
        drivers.append(SessionDriver(config))
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
