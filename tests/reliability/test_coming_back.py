"""With one slot, a client that leaves and comes back at once does not meet its old session."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import msgspec
import pytest
from tests.entrypoints.running import running
from tests.entrypoints.talk import Talk

from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = pytest.mark.e2e

TIMES = 50
PATH = "/v1/realtime"


def close(talk: Talk) -> None:
    """Leave in good order."""
    talk.socket.close()


def vanish(talk: Talk) -> None:
    """Leave without a word, as a process does that was killed."""
    talk.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.socket.socket.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    pipeline = load_pipeline("omniduplex/echo", None)
    limits = msgspec.structs.replace(pipeline.duplex_session, max_sessions=1)
    with (
        DuplexOmni(pipeline=msgspec.structs.replace(pipeline, duplex_session=limits)) as omni,
        running(create_app(omni)) as server,
    ):
        yield server.base


@pytest.mark.parametrize("leave", [close, vanish])
def test_a_client_that_comes_back_at_once_is_let_in(
    base: str, leave: Callable[[Talk], None]
) -> None:
    for _ in range(TIMES):
        with Talk(base, PATH) as talk:
            assert talk.recv()["type"] == "session.created"
            leave(talk)


def test_while_nobody_leaves_the_next_one_is_refused_at_once(base: str) -> None:
    with Talk(base, PATH) as staying:
        staying.until("session.created")
        with Talk(base, PATH) as refused:
            (error,), code, reason = refused.ends()
        assert error["error"]["code"] == "resource_exhausted"
        assert (code, reason) == (1008, "resource_exhausted")
