"""Two connections want one session at the same moment."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.faults.counts import PATIENCE_S, times
from tests.faults.resumable_echo import resumable_echo
from websockets.asyncio.client import ClientConnection, connect

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.timeout(PATIENCE_S)]

RACES = times(500)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    with DuplexOmni(pipeline=resumable_echo(max_sessions=1)) as omni:
        yield omni


async def receive(socket: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(60):
        event: dict[str, Any] = json.loads(await socket.recv())
        return event


async def test_of_two_resumes_with_one_token_exactly_one_wins(
    omni: DuplexOmni, serve_app: ServeApp
) -> None:
    url = serve_app(create_app(omni)).replace("http", "ws", 1) + "/v1/duplex?autostart=0"
    refusals: Counter[str] = Counter()
    async with AsyncExitStack() as connections:
        holder = await connections.enter_async_context(connect(url, open_timeout=None))
        await holder.send(json.dumps({"type": "session.update", "session": {}}))
        created, updated = await receive(holder), await receive(holder)
        request = {
            "type": "session.resume",
            "session_id": created["session"]["id"],
            "resume_token": created["resume_token"],
            "last_received_server_event_seq": updated["server_event_seq"],
        }
        for race in range(RACES):
            if race % 2:  # every other race is a takeover
                await holder.close()
            rivals = [
                await connections.enter_async_context(
                    connect(url, compression=None, open_timeout=None)
                )
                for _ in range(2)
            ]
            await asyncio.gather(*(rival.send(json.dumps(request)) for rival in rivals))
            answers = await asyncio.gather(*(receive(rival) for rival in rivals))
            winners = [one for one in answers if one["type"] == "session.resumed"]
            losers = [one for one in answers if one["type"] == "error"]
            assert (len(winners), len(losers)) == (1, 1), answers
            assert winners[0]["attachment_generation"] == race + 2
            refusals[losers[0]["error"]["code"]] += 1
            request["resume_token"] = winners[0]["resume_token"]
            holder = rivals[answers.index(winners[0])]
            await rivals[answers.index(losers[0])].close()
            await holder.send(json.dumps({"type": "session.heartbeat"}))
            beat = await receive(holder)
            assert (beat["type"], beat["server_event_seq"]) == ("session.heartbeat_ack", race + 3)
            request["last_received_server_event_seq"] = beat["server_event_seq"]

    assert refusals.keys() <= {"session_resume_conflict", "invalid_resume_token"}
    assert refusals.total() == RACES
