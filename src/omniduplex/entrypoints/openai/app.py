"""The Starlette application: every route of a server that talks in full duplex."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.duplex.handshake import DUPLEX_PATH, REALTIME_PATH
from omniduplex.entrypoints.duplex.ports import ServedOmni
from omniduplex.entrypoints.duplex.recorder import ConversationRecorder, RecordingMiddleware
from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.entrypoints.openai.chat import CHAT_OPERATION, CHAT_PATH, ChatService
from omniduplex.entrypoints.openai.description import description_routes
from omniduplex.entrypoints.openai.errors import error_response, on_http_exception
from omniduplex.entrypoints.openai.guards import guards
from omniduplex.entrypoints.openai.health import health_operations, health_routes
from omniduplex.entrypoints.openai.models import MODEL_OPERATIONS, ModelCard, model_routes
from omniduplex.entrypoints.openai.speech import SPEECH_PATH
from omniduplex.entrypoints.openai.talk_page import talk_page_routes
from omniduplex.entrypoints.openai.transcriptions import TRANSCRIPTIONS_PATH

# Routes that OpenAI clients know; of them a duplex deployment serves chat completions at most.
TURN_PATHS = (CHAT_PATH, SPEECH_PATH, TRANSCRIPTIONS_PATH)
COUNTED = "active_sessions"


def create_app(
    omni: ServedOmni,
    *,
    served_model_name: str | None = None,
    api_key: str | None = None,
    allowed_origins: Sequence[str] = (),
    serving: DuplexServing | None = None,
    recorder: ConversationRecorder | None = None,
    chat: AsyncOmniBase[Any] | None = None,
    clock: Callable[[], float] = time.time,
) -> Starlette:
    """Build the application around an engine; an empty key guards nothing.

    Web pages are let in if they are its own, or of the `allowed_origins`.
    `chat` is what answers chat completions, if the model does: the same engine, without sessions.
    """
    model = served_model_name or omni.pipeline.model
    serving = serving or DuplexServing(omni, model)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with serving.running():
            yield
            await serving.drain(0.0)

    middleware = guards(api_key, allowed_origins)
    if recorder is not None:  # inside the checks: strangers leave no files
        middleware.append(Middleware(RecordingMiddleware, recorder=recorder, model=model))
    operations = [*MODEL_OPERATIONS, *health_operations(COUNTED)]
    operations += [CHAT_OPERATION] if chat else []
    app = Starlette(
        routes=(
            WebSocketRoute(REALTIME_PATH, serving.serve),
            WebSocketRoute(DUPLEX_PATH, serving.serve),
            *model_routes(ModelCard(id=model, created=int(clock()))),
            *(ChatService(chat, model, clock=clock).routes() if chat else ()),
            *(Route(path, _turn_only, methods=["GET", "POST"]) for path in TURN_PATHS),
            *health_routes(omni, serving, COUNTED, omni.active_session_count),
            *description_routes(model, operations, is_guarded=bool(api_key)),
            *talk_page_routes(),
        ),
        middleware=middleware,
        exception_handlers={HTTPException: on_http_exception},
        lifespan=lifespan,
    )
    app.state.serving = serving
    return app


async def _turn_only(request: Request) -> Response:
    message = f"{request.url.path} is not available in duplex mode; connect to {REALTIME_PATH}."
    return error_response(404, message, "unsupported")
