from __future__ import annotations

from collections.abc import AsyncIterator

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

from omniduplex.clients.duplex import DuplexClient, DuplexClientBase, InlineDuplexClient


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


@pytest.fixture(params=["websocket", "inline"])
async def client(
    request: pytest.FixtureRequest, peer: Peer, clock: VirtualClock, anyio_backend: str
) -> AsyncIterator[DuplexClientBase]:
    """A client that is not open yet, for a peer in the test's hand."""
    if request.param == "inline":
        yield InlineDuplexClient(InlinePeer(peer), model=MODEL, clock=clock)
        return
    async with serve_peer(WebSocketPeer(peer)) as url:
        yield DuplexClient(url, model=MODEL, clock=clock)
