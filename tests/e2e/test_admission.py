"""The embedded default takes four callers, says no to a fifth, and answers two at once."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from tests.e2e.hearing import understood
from tests.e2e.recordings import recording
from tests.e2e.server import Server
from tests.e2e.test_spoken_questions import ask
from tests.entrypoints.talk import Talk

from omniduplex.clients import DuplexClient, DuplexProtocolError
from omniduplex.clients.local import create_duplex_session_config

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.local,
    pytest.mark.anyio,
    pytest.mark.timeout(300),
]

MODEL = "omniduplex/local"
# The default of the deploy file.
MAX_SESSIONS = 4


@pytest.fixture(autouse=True)
def free_places(local_server: Server) -> None:
    """Whoever was served before has left; one that only hung up keeps its place for a while."""
    while httpx2.get(f"{local_server.http}/health").json()["active_sessions"]:
        time.sleep(0.1)


def caller(server: Server) -> DuplexClient:
    return DuplexClient(server.url, model=MODEL, config=create_duplex_session_config())


async def test_one_caller_too_many_is_refused_until_another_leaves(local_server: Server) -> None:
    async with AsyncExitStack() as lines:
        callers = [
            await lines.enter_async_context(caller(local_server)) for _ in range(MAX_SESSIONS)
        ]
        with pytest.raises(DuplexProtocolError) as refused:
            await caller(local_server).open()
        assert refused.value.code == "resource_exhausted"
        assert refused.value.raw is not None
        assert refused.value.raw.error.type == "rate_limit_error"
        assert refused.value.raw.error.retryable is True

        await callers[0].close()
        async with caller(local_server) as next_caller:
            assert next_caller.session_id not in {other.session_id for other in callers}


async def test_a_stock_client_is_refused_by_name_and_closed(local_server: Server) -> None:
    async with AsyncExitStack() as lines:
        for _ in range(MAX_SESSIONS):
            await lines.enter_async_context(caller(local_server))
        events, code, reason = await asyncio.to_thread(refusal, local_server)

    (error,) = events
    assert (error["type"], error["error"]["code"]) == ("error", "resource_exhausted")
    assert error["error"]["type"] == "rate_limit_error"
    assert (code, reason) == (1008, "resource_exhausted")


def refusal(server: Server) -> tuple[list[dict[str, Any]], int, str]:
    with Talk(server.http, "/v1/realtime?model=anything") as talk:
        return talk.ends()


async def test_two_at_once_are_both_answered(local_server: Server) -> None:
    both = [recording("capital"), recording("timer")]
    exchanges = await asyncio.gather(*(ask(local_server.url, question) for question in both))

    for exchange in exchanges:
        assert understood(exchange.question.words, exchange.heard)
        assert exchange.collector.audio_ms(exchange.response_id) > 0
        assert exchange.collector.response_done(exchange.response_id) is not None
