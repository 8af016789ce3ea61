"""The Starlette application of a server that answers turn requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.openai.chat import CHAT_OPERATION, ChatService
from omniduplex.entrypoints.openai.description import Operation, description_routes
from omniduplex.entrypoints.openai.errors import error_response, on_http_exception
from omniduplex.entrypoints.openai.guards import guards
from omniduplex.entrypoints.openai.health import health_operations, health_routes
from omniduplex.entrypoints.openai.models import MODEL_OPERATIONS, ModelCard, model_routes
from omniduplex.entrypoints.openai.speech import SPEECH_OPERATION, SpeechService
from omniduplex.entrypoints.openai.transcriptions import (
    TRANSCRIPTION_OPERATION,
    TranscriptionService,
)
from omniduplex.entrypoints.openai.turn_realtime.service import TurnRealtimeService
from omniduplex.entrypoints.openai.turn_serving import TurnServing, TurnServingMiddleware

COUNTED = "active_turns"


def create_turn_app(
    omni: AsyncOmniBase[Any],
    *,
    served_model_name: str | None = None,
    api_key: str | None = None,
    allowed_origins: Sequence[str] = (),
    clock: Callable[[], float] = time.time,
) -> Starlette:
    """Build the application around an engine; `create_app` says whom it lets in."""
    model = served_model_name or omni.pipeline.model
    serving = TurnServing()
    middleware = guards(api_key, allowed_origins)
    middleware.append(Middleware(TurnServingMiddleware, serving=serving))
    app = Starlette(
        routes=(
            *_turn_routes(omni, model, clock),
            *model_routes(ModelCard(id=model, created=int(clock()))),
            *TurnRealtimeService(omni, model, serving).routes(),
            *health_routes(omni, serving, COUNTED, omni.active_turn_count),
            *description_routes(model, _operations(omni), is_guarded=bool(api_key)),
        ),
        middleware=middleware,
        exception_handlers={HTTPException: on_http_exception},
    )
    app.state.serving = serving
    return app


def _turns(omni: AsyncOmniBase[Any]) -> Sequence[tuple[Operation, bool]]:
    """The kinds of turns, each with whether the model serves it."""
    features = omni.turn_features
    return (
        (CHAT_OPERATION, features.supports_chat_completions),
        (SPEECH_OPERATION, features.supports_speech),
        (TRANSCRIPTION_OPERATION, features.supports_transcription),
    )


def _operations(omni: AsyncOmniBase[Any]) -> Sequence[Operation]:
    served = (operation for operation, is_served in _turns(omni) if is_served)
    return (*served, *MODEL_OPERATIONS, *health_operations(COUNTED))


def _turn_routes(
    omni: AsyncOmniBase[Any], model: str, clock: Callable[[], float]
) -> Sequence[BaseRoute]:
    routes: list[BaseRoute] = [
        Route(operation.path, _not_by_this_model, methods=["GET", "POST"])
        for operation, is_served in _turns(omni)
        if not is_served
    ]
    return (
        *routes,
        *ChatService(omni, model, clock=clock).routes(),
        *SpeechService(omni, model).routes(),
        *TranscriptionService(omni, model).routes(),
    )


async def _not_by_this_model(request: Request) -> Response:
    message = f"The deployed model does not serve {request.url.path}."
    return error_response(404, message, "unsupported")
