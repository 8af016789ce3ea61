"""`GET /health` and `GET /metrics`: what an operator's tools ask; open to all, without a key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from omniduplex.entrypoints.duplex.ports import ServedOmni
from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.telemetry.metrics import METRICS

# An engine loop that does not answer within this long serves nobody.
HEALTH_TIMEOUT_S = 2.0


def health_routes(omni: ServedOmni, serving: DuplexServing) -> Sequence[BaseRoute]:
    """Return the routes that tell whether the engine runs, and what it has measured."""

    async def health(_: Request) -> Response:
        if not omni.alive:
            return JSONResponse({"status": "dead"}, 503)
        if serving.is_draining:
            return JSONResponse({"status": "draining"}, 503)
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT_S):
                count = await omni.active_session_count()
        except TimeoutError:
            return JSONResponse({"status": "stuck"}, 503)
        return JSONResponse({"status": "ok", "active_sessions": count})

    async def metrics(_: Request) -> Response:
        return Response(METRICS.exposition(), media_type=CONTENT_TYPE_LATEST)

    return Route("/health", health), Route("/metrics", metrics)
