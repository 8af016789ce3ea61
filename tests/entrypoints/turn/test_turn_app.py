"""What a server of turns answers beside its three routes."""

from __future__ import annotations

import asyncio

import pytest
from anyio.lowlevel import checkpoint
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.types import Message, Receive, Scope, Send
from tests.entrypoints.turn.sounds import MODEL

from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.openai.turn_app import create_turn_app
from omniduplex.entrypoints.openai.turn_serving import TurnServing

CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}


def test_models_and_health(turn_omni: AsyncOmni) -> None:
    client = TestClient(create_turn_app(turn_omni, served_model_name="gpt-audio"))

    assert [card["id"] for card in client.get("/v1/models").json()["data"]] == ["gpt-audio"]
    assert client.get("/health").json() == {"status": "ok", "active_turns": 0}
    asked = client.post("/v1/chat/completions", json=CHAT | {"model": "gpt-audio"})
    assert asked.json()["model"] == "gpt-audio"


def test_the_key_is_asked_for(turn_omni: AsyncOmni) -> None:
    client = TestClient(create_turn_app(turn_omni, api_key="secret"))
    key = {"Authorization": "Bearer secret"}

    assert client.post("/v1/chat/completions", json=CHAT).status_code == 401
    assert client.post("/v1/chat/completions", json=CHAT, headers=key).status_code == 200


def test_an_error_quotes_no_request_at_length(turn_omni: AsyncOmni) -> None:
    client = TestClient(create_turn_app(turn_omni))
    refused = client.post("/v1/chat/completions", json=CHAT | {"model": "x" * 100_000})

    assert refused.status_code == 404
    assert refused.json()["error"]["message"].startswith("The model 'xxx")
    assert len(refused.content) < 1000


def test_a_server_that_stops_takes_nothing_new(turn_omni: AsyncOmni) -> None:
    app = create_turn_app(turn_omni)
    client = TestClient(app)
    asyncio.run(app.state.serving.drain(0.0))

    refused = client.post("/v1/chat/completions", json=CHAT)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_draining")
    assert client.get("/health").json() == {"status": "draining"}
    with pytest.raises(WebSocketDenialResponse) as denied, client.websocket_connect("/v1/realtime"):
        pass
    assert denied.value.status_code == 503


class Slow:
    """An application that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.set()
        await self.answer.wait()
        await PlainTextResponse("done")(scope, receive, send)


async def ignore(_: Message) -> None:
    return


async def nothing() -> Message:
    return {"type": "http.request"}


@pytest.mark.parametrize("hurried", [False, True])
def test_a_drain_waits_for_what_runs_unless_it_is_hurried(hurried: bool) -> None:
    async def check() -> None:
        serving, slow = TurnServing(), Slow()
        scope: Scope = {"type": "http", "path": "/v1/x", "method": "GET", "headers": []}
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(serving.serve(slow, scope, nothing, ignore))
            await slow.asked.wait()
            draining = group.create_task(serving.drain(3600.0))
            await checkpoint()
            assert serving.is_draining
            assert not draining.done()
            if hurried:
                serving.hurry()
                await draining
            slow.answer.set()
            await draining

    asyncio.run(check())
