"""A server that dies takes its sessions along, and its clients know it soon (R7)."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.reliability.served_echo import served_echo
from websockets.asyncio.client import ClientConnection, connect

from omniduplex.clients.duplex import (
    DuplexClient,
    DuplexClientError,
    DuplexConnectionError,
    DuplexSessionClosedError,
    ReconnectPolicy,
)
from omniduplex.entrypoints.openai.server import bind

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.timeout(120)]

SOON_S, NOT_SOON_S = 4.0, 60.0
ONCE = ReconnectPolicy(max_attempts=1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Network:
    """Where clients find their server; a silent one is noticed in `silence_s` twice over."""

    def __init__(self, address: str, silence_s: float) -> None:
        self.address = address
        self._silence_s = silence_s
        self._open_timeout_s: float | None = None

    async def connect(self, url: str) -> ClientConnection:
        moved = urlsplit(url)._replace(netloc=self.address).geturl()
        socket = await connect(
            moved,
            compression=None,
            open_timeout=self._open_timeout_s,
            ping_interval=self._silence_s,
            ping_timeout=self._silence_s,
            close_timeout=self._silence_s,
        )
        self._open_timeout_s = self._silence_s
        return socket


def client_by(connecting: Callable[[str], Awaitable[ClientConnection]]) -> DuplexClient:
    return DuplexClient("ws://server", model="omniduplex/echo", reconnect=ONCE, connect=connecting)


# A killed server's sockets tell; a stopped one is only silent.
@pytest.mark.parametrize(
    ("blow", "silence_s"), [(signal.SIGKILL, NOT_SOON_S), (signal.SIGSTOP, SOON_S)]
)
async def test_a_client_of_a_dead_server_gets_an_error_in_every_place_where_it_waits(
    tmp_path: Path, blow: signal.Signals, silence_s: float
) -> None:
    with served_echo(tmp_path) as server:
        client = client_by(Network(server.address, silence_s).connect)
        await client.open()
        events, answers = client.events(), client.responses()
        os.kill(server.process.pid, blow)
        try:
            with pytest.raises(DuplexClientError, match="not resumed in 1 attempts"):
                async for _ in events:
                    pass
            with pytest.raises(DuplexClientError):
                await anext(answers)
            with pytest.raises(DuplexSessionClosedError):
                await client.commit()
            await client.close()
        finally:
            if blow is signal.SIGSTOP:
                os.kill(server.process.pid, signal.SIGCONT)


async def test_the_next_server_does_not_know_the_session(tmp_path: Path) -> None:
    with served_echo(tmp_path) as first, served_echo(tmp_path) as second:
        network = Network(first.address, NOT_SOON_S)
        client = client_by(network.connect)
        await client.open()
        events = client.events()
        network.address = second.address
        first.process.kill()

        with pytest.raises(DuplexSessionClosedError, match="session_resume_expired"):
            async for _ in events:
                pass
        await client.close()


async def test_where_nobody_listens_there_is_an_error_at_once() -> None:
    with bind("127.0.0.1", 0) as deaf:
        network = Network(f"127.0.0.1:{deaf.getsockname()[1]}", NOT_SOON_S)
        with pytest.raises(DuplexConnectionError, match="cannot connect"):
            await client_by(network.connect).open()
