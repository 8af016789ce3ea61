"""The API key check, the same for every `/v1` route and before any WebSocket upgrade."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from omniduplex.entrypoints.openai.errors import error_response

# Browsers cannot set headers on a WebSocket; OpenAI's clients send the key as a subprotocol.
KEY_SUBPROTOCOL = "openai-insecure-api-key."


class ApiKeyMiddleware:
    """Answers 401 to a `/v1` request without the key; a key in the URL does not count."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._key = api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if not _is_guarded(scope) or self._is_key_among(_presented(scope)):
            await self._app(scope, receive, send)
            return
        response = error_response(401, "Incorrect or missing API key.", "invalid_api_key")
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(response)
        else:
            await response(scope, receive, send)

    def _is_key_among(self, presented: list[bytes]) -> bool:
        return any(hmac.compare_digest(self._key, key) for key in presented)


def _is_guarded(scope: Scope) -> bool:
    return scope["type"] != "lifespan" and f"{scope['path']}/".startswith("/v1/")


def _presented(scope: Scope) -> list[bytes]:
    """Return the keys that a request carries, as the bytes that came."""
    scheme, _, credentials = Headers(scope=scope).get("authorization", "").partition(" ")
    keys = [credentials.strip()] if scheme.lower() == "bearer" else []
    keys += [
        name.removeprefix(KEY_SUBPROTOCOL)
        for name in scope.get("subprotocols", [])
        if name.startswith(KEY_SUBPROTOCOL)
    ]
    return [key.encode("latin-1") for key in keys]
