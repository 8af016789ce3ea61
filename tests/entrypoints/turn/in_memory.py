"""A client of an application in the same event loop: what happens between them has one order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message

WAIT_S = 60


class Client:
    """One WebSocket: what it says is there at once, `over` is the end of the application's part.

    `waits` is set for each time that the application waits for a message and finds none.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        path, _, query = path.partition("?")
        self._said: asyncio.Queue[Message] = asyncio.Queue()
        self._heard: asyncio.Queue[Message] = asyncio.Queue()
        self._said.put_nowait({"type": "websocket.connect"})
        self.waits: asyncio.Queue[None] = asyncio.Queue()
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": query.encode(),
            "headers": [(b"host", b"test")],
            "subprotocols": [],
        }
        self.over = asyncio.ensure_future(app(scope, self._receive, self._heard.put))

    async def _receive(self) -> Message:
        if self._said.empty():
            self.waits.put_nowait(None)
        return await self._said.get()

    def says(self, wire_type: str, **fields: Any) -> None:
        text = msgspec.json.encode({"type": wire_type, **fields}).decode()
        self._said.put_nowait({"type": "websocket.receive", "text": text})

    def asks(self, text: str) -> None:
        part = {"type": "input_text", "text": text}
        item = {"type": "message", "role": "user", "content": [part]}
        self.says("conversation.item.create", item=item)
        self.says("response.create", response={"output_modalities": ["text"]})

    def leaves(self) -> None:
        self._said.put_nowait({"type": "websocket.disconnect", "code": 1000})

    async def until(self, wire_type: str) -> dict[str, Any]:
        """The next event of this type."""
        while True:
            message = await self._heard.get()
            assert message["type"] != "websocket.close", message
            if message["type"] == "websocket.send":
                event = msgspec.json.decode(message["text"])
                assert isinstance(event, dict)
                if event["type"] == wire_type:
                    return event

    async def closed(self) -> tuple[int, str]:
        """Code and reason of the close frame."""
        while True:
            message = await self._heard.get()
            if message["type"] == "websocket.close":
                return message["code"], message["reason"]


@asynccontextmanager
async def connected(app: ASGIApp, path: str = "/v1/realtime") -> AsyncIterator[Client]:
    """A client that leaves, and whose connection is over, at the end."""
    client = Client(app, path)
    try:
        async with asyncio.timeout(WAIT_S):
            yield client
            client.leaves()
            await client.over
    finally:
        client.over.cancel()
