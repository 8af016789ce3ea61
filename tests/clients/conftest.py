from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Protocol

import pytest
from tests.clients.resumable import ResumablePeer, serve_resumable
from tests.clients.scripted import (
    MODEL,
    InlinePeer,
    JumpingClock,
    Peer,
    VirtualClock,
    WebSocketPeer,
    serve_peer,
)

from omniduplex.clients.duplex import (
    Clock,
    DuplexClient,
    DuplexClientBase,
    DuplexTrace,
    InlineDuplexClient,
    SessionConfig,
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def peer() -> Peer:
    return Peer()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def jumping_clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def websocket_peer(
    peer: Peer, anyio_backend: str
) -> AsyncIterator[tuple[WebSocketPeer, str]]:
    served = WebSocketPeer(peer)
    async with serve_peer(served) as url:
        yield served, url


@pytest.fixture
async def server(anyio_backend: str) -> AsyncIterator[tuple[ResumablePeer, str]]:
    """A server whose session can be resumed, and its URL."""
    resumable = ResumablePeer()
    async with serve_resumable(resumable) as url:
        yield resumable, url


class Connect(Protocol):
    """Makes a client, not open yet, for the peer in the test's hand."""

    def __call__(
        self, *, clock: Clock, config: SessionConfig = ..., trace: DuplexTrace | None = ...
    ) -> DuplexClientBase: ...


@pytest.fixture(params=["websocket", "inline"])
async def connect(
    request: pytest.FixtureRequest, peer: Peer, anyio_backend: str
) -> AsyncIterator[Connect]:
    """Clients of either kind."""
    if request.param == "inline":
        yield partial(InlineDuplexClient, InlinePeer(peer), model=MODEL)
        return
    async with serve_peer(WebSocketPeer(peer)) as url:
        yield partial(DuplexClient, url, model=MODEL)


@pytest.fixture
def client(connect: Connect, clock: VirtualClock) -> DuplexClientBase:
    return connect(clock=clock)
