"""`GET /openapi.json`: a server's HTTP routes, described by the types that they read and write."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from omniduplex.entrypoints.openai.errors import ApiErrorBody

JSON = "application/json"
# The newest version that generators of clients read.
OPENAPI_VERSION = "3.1.0"
ABOUT = (
    "Single requests and what an operator asks. Conversations are WebSocket connections to"
    " `/v1/realtime`, which OpenAPI has no words for."
)

Schema = dict[str, Any]


class Content(NamedTuple):
    """One form of a body: types of ours, or the JSON schema of what is none."""

    media_type: str
    shape: Sequence[type[msgspec.Struct]] | Schema


class Operation(NamedTuple):
    """One method of one path."""

    name: str
    method: Literal["get", "post"]
    path: str
    summary: str
    answers: Mapping[int, Sequence[Content]]
    takes: Content | None = None
    also: Sequence[type[msgspec.Struct]] = ()
    """Types that are only spoken of."""

    @property
    def is_api(self) -> bool:
        """Whether it is OpenAI's: guarded by the key, and refusing as the API does."""
        return self.path.startswith("/v1/")

    @property
    def kinds(self) -> Sequence[type[msgspec.Struct]]:
        """All types that it reads, writes or speaks of."""
        contents = [one for answer in self.answers.values() for one in answer]
        contents += [self.takes] if self.takes else []
        shapes = [one.shape for one in contents if not isinstance(one.shape, dict)]
        return [*self.also, *(kind for shape in shapes for kind in shape)]


def description_routes(
    model: str, operations: Sequence[Operation], *, is_guarded: bool
) -> Sequence[BaseRoute]:
    """Return the route that describes these operations of a server of one model."""
    body = msgspec.json.encode(describe(model, operations, is_guarded=is_guarded))

    async def description(_: Request) -> Response:
        return Response(body, media_type=JSON)

    return (Route("/openapi.json", description),)


def describe(model: str, operations: Sequence[Operation], *, is_guarded: bool) -> Schema:
    """Write an OpenAPI document; what is asked names the one model that is there."""
    kinds = [ApiErrorBody, *(kind for operation in operations for kind in operation.kinds)]
    references, schemas = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    writer = _Writer(model, dict(zip(kinds, references, strict=True)), is_guarded)
    paths: dict[str, Schema] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = writer.operation(operation)
        for kind in _asked(operation):
            writer.name_model(schemas[kind.__name__])
    components: Schema = {"schemas": schemas}
    if is_guarded:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    info = {"title": "omniduplex", "version": version("omniduplex"), "description": ABOUT}
    return {"openapi": OPENAPI_VERSION, "info": info, "paths": paths, "components": components}


def _asked(operation: Operation) -> Sequence[type[msgspec.Struct]]:
    taken = operation.takes.shape if operation.takes else ()
    return () if isinstance(taken, dict) else taken


class _Writer:
    """Renders operations; `references` has the schema of each type."""

    def __init__(self, model: str, references: Mapping[Any, Schema], is_guarded: bool) -> None:
        self._model = {"type": "string", "enum": [model]}
        self._references = references
        self._is_guarded = is_guarded

    def name_model(self, schema: Schema) -> None:
        """Let an object that names a model name the one that is there."""
        if "model" in schema["properties"]:
            schema["properties"]["model"] = self._model

    def operation(self, operation: Operation) -> Schema:
        """Render one operation."""
        responses = {
            str(status): self._response(answer) for status, answer in operation.answers.items()
        }
        said: Schema = {
            "operationId": operation.name,
            "summary": operation.summary,
            "responses": responses,
        }
        if operation.is_api:
            refusal = self._response((Content(JSON, (ApiErrorBody,)),))
            responses |= {"4XX": refusal, "5XX": refusal}
            said["security"] = [{"key": []}] if self._is_guarded else []
        if "{model}" in operation.path:
            where = {"name": "model", "in": "path", "required": True}
            said["parameters"] = [{**where, "schema": self._model}]
        if operation.takes is not None:
            said["requestBody"] = {"required": True, "content": self._body(operation.takes)}
        return said

    def _response(self, contents: Sequence[Content]) -> Schema:
        content = {one.media_type: {"schema": self._shape(one)} for one in contents}
        return {"description": "The answer.", "content": content}

    def _body(self, content: Content) -> Schema:
        shape = copy.deepcopy(self._shape(content))
        if "properties" in shape:
            self.name_model(shape)
        return {content.media_type: {"schema": shape}}

    def _shape(self, content: Content) -> Schema:
        if isinstance(content.shape, dict):
            return content.shape
        shapes = [self._references[kind] for kind in content.shape]
        return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
