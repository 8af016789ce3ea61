"""Which web pages may talk with this server: its own, and those that its operator names.

A browser lets any page open a WebSocket or send a form to `127.0.0.1`, and says in `Origin` which
page it was. Other clients send no such header.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from omniduplex.entrypoints.openai.errors import error_response

ANY_ORIGIN = "*"
# What a page of another origin gets by these it cannot read, and they change nothing (RFC 9110).
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})


class OriginMiddleware:
    """Answers 403, before any upgrade, to what a page of a foreign origin wants to do.

    `allowed` origins are in lower case and have no slash at the end; `*` is all of them.
    """

    def __init__(self, app: ASGIApp, allowed: Collection[str] = ()) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if not _is_guarded(scope) or self._may(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        message = "Pages of this origin may not use this server; it is started with --allow-origin."
        response = error_response(403, message, "origin_not_allowed")
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(response)
        else:
            await response(scope, receive, send)

    def _may(self, headers: Headers) -> bool:
        """Every origin that a request names has to be allowed; a browser names one."""
        host = headers.get("host", "").lower()
        return all(self._is_allowed(origin.lower(), host) for origin in headers.getlist("origin"))

    def _is_allowed(self, origin: str, host: str) -> bool:
        if origin in self._allowed or ANY_ORIGIN in self._allowed:
            return True
        # The page's own server, by the name and port that it was called by. Not the scheme: a
        # proxy may speak TLS for us.
        return bool(host) and _authority(origin) == host


def _authority(origin: str) -> str:
    """The name and port in an origin; empty when there is none, or it is no URL at all."""
    try:
        return urlsplit(origin).netloc
    except ValueError:  # a bracket without its pair, or around no IP address
        return ""


def _is_guarded(scope: Scope) -> bool:
    if scope["type"] == "http":
        return scope["method"] not in _HARMLESS
    return bool(scope["type"] == "websocket")
