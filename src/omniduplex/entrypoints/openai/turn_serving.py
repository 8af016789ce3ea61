"""How a server of turn requests stops: it finishes those it has, and takes no more."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Receive, Scope, Send

from omniduplex.entrypoints.openai.errors import error_response


class TurnServing:
    """Counts the requests that are being answered, so that a stopping server can wait for them."""

    def __init__(self) -> None:
        self._requests = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._patience: asyncio.Timeout | None = None
        self._is_draining = False

    @property
    def is_draining(self) -> bool:
        """Whether the server stops, and takes no request any more."""
        return self._is_draining

    async def drain(self, timeout_s: float) -> None:
        """Take no request any more and give the running ones this long."""
        self._is_draining = True
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
        if self._is_draining:
            response = error_response(503, "The server stops.", "server_draining")
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
    """Shows `/v1` requests to a `TurnServing`."""

    def __init__(self, app: ASGIApp, serving: TurnServing) -> None:
        self._app = app
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, requests to the API through the count."""
        if scope["type"] == "http" and scope["path"].startswith("/v1/"):
            await self._serving.serve(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)
