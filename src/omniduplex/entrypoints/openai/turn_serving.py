"""How a server of turns stops: it finishes those it has, and takes no more."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from omniduplex.entrypoints.openai.errors import error_response


class TurnServing:
    """Counts what is being answered, so that a stopping server can wait for it."""

    def __init__(self) -> None:
        self._requests = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._patience: asyncio.Timeout | None = None
        self.stopping = asyncio.Event()
        """Set when the server takes no request any more, for those who would go on for ever."""

    @property
    def is_draining(self) -> bool:
        """Whether the server stops, and takes no request any more."""
        return self.stopping.is_set()

    async def drain(self, timeout_s: float) -> None:
        """Take no request any more and give the running ones this long."""
        self.stopping.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s) as self._patience:
                await self._idle.wait()
        self._patience = None

    def hurry(self) -> None:
        """Give what still runs no more time."""
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count it until it is answered in full."""
        if self.is_draining:
            response = error_response(503, "The server stops.", "server_draining")
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).send_denial_response(response)
            else:
                await response(scope, receive, send)
            return
        self._requests += 1
        self._idle.clear()
        try:
            await app(scope, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()


class TurnServingMiddleware:
    """Shows `/v1` requests and connections to a `TurnServing`."""

    def __init__(self, app: ASGIApp, serving: TurnServing) -> None:
        self._app = app
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, what concerns the API through the count."""
        if scope["type"] != "lifespan" and scope["path"].startswith("/v1/"):
            await self._serving.serve(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)
