"""`GET /v1/models`: the one model that is deployed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from omniduplex.entrypoints.openai.description import JSON, Content, Operation
from omniduplex.entrypoints.openai.errors import error_response


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A model as the OpenAI API lists it; `created` in Unix seconds."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "omniduplex"


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a listing."""

    object: Literal["list"] = "list"
    data: tuple[ModelCard, ...]


MODEL_OPERATIONS = (
    Operation(
        "listModels",
        "get",
        "/v1/models",
        "The one model that is deployed here.",
        {200: (Content(JSON, (ModelList,)),)},
    ),
    Operation(
        "retrieveModel",
        "get",
        "/v1/models/{model}",
        "The model, by its name.",
        {200: (Content(JSON, (ModelCard,)),)},
    ),
)


def model_routes(card: ModelCard) -> Sequence[BaseRoute]:
    """Return the routes that list and retrieve the model."""

    async def list_models(_: Request) -> Response:
        return _json(ModelList(data=(card,)))

    async def retrieve_model(request: Request) -> Response:
        name = request.path_params["model"]
        if name != card.id:
            return error_response(404, f"The model {name!r} does not exist.", "model_not_found")
        return _json(card)

    return (
        Route("/v1/models", list_models),
        Route("/v1/models/{model:path}", retrieve_model),
    )


def _json(body: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(body), media_type=JSON)
