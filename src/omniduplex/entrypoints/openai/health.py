"""`GET /health` and `GET /metrics`: what an operator's tools ask; open to all, without a key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from omniduplex.entrypoints.openai.description import JSON, Content, Operation
from omniduplex.telemetry.metrics import METRICS

# An engine loop that does not answer within this long serves nobody.
HEALTH_TIMEOUT_S = 2.0


class Engine(Protocol):
    """What may have died."""

    @property
    def alive(self) -> bool:
        """Whether it can serve."""


class Serving(Protocol):
    """What may be stopping."""

    @property
    def is_draining(self) -> bool:
        """Whether it takes nothing new."""


def health_operations(count_name: str) -> Sequence[Operation]:
    """Describe the routes of a server that counts this."""
    status = {"enum": ["ok", "draining", "stuck", "dead"]}
    report = {
        "type": "object",
        "properties": {"status": status, count_name: {"type": "integer", "minimum": 0}},
        "required": ["status"],
    }
    told = (Content(JSON, report),)
    metrics = (Content("text/plain", {"type": "string"}),)
    return (
        Operation("health", "get", "/health", "Whether it serves.", {200: told, 503: told}),
        Operation("metrics", "get", "/metrics", "Prometheus metrics.", {200: metrics}),
    )


def health_routes(
    omni: Engine, serving: Serving, count_name: str, count: Callable[[], Awaitable[int]]
) -> Sequence[BaseRoute]:
    """Return the routes that tell whether the engine runs, and what it has measured.

    `count` asks the engine's own loop how much it has to do, which shows that the loop turns.
    """

    async def health(_: Request) -> Response:
        if not omni.alive:
            return JSONResponse({"status": "dead"}, 503)
        if serving.is_draining:
            return JSONResponse({"status": "draining"}, 503)
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT_S):
                counted = await count()
        except TimeoutError:
            return JSONResponse({"status": "stuck"}, 503)
        return JSONResponse({"status": "ok", count_name: counted})

    async def metrics(_: Request) -> Response:
        return Response(METRICS.exposition(), media_type=CONTENT_TYPE_LATEST)

    return Route("/health", health), Route("/metrics", metrics)
