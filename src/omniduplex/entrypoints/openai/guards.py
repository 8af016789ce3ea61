"""Who is let in: the checks before every route, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from omniduplex.entrypoints.openai.auth import ApiKeyMiddleware
from omniduplex.entrypoints.openai.origin import OriginMiddleware


def guards(api_key: str | None, allowed_origins: Sequence[str]) -> list[Middleware]:
    """Return the checks; an empty key is none, and own pages need not be among the origins."""
    origins = [origin.lower().rstrip("/") for origin in allowed_origins]
    checks = [Middleware(OriginMiddleware, allowed=origins)]
    if origins:  # what their pages ask for they may also read
        readers = Middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"]
        )
        checks.append(readers)
    if api_key:
        checks.append(Middleware(ApiKeyMiddleware, api_key=api_key))
    return checks
