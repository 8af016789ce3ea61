"""What a server says of its own HTTP routes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.entrypoints.fake_omni import FakeOmni

from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.turn_app import create_turn_app

MODEL = "somebody/speaker"
PAGES = {"/", "/openapi.json"}


def described(app: Starlette) -> dict[str, Any]:
    answer = TestClient(app).get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    document: dict[str, Any] = answer.json()
    return document


@pytest.fixture(scope="module")
def turns() -> dict[str, Any]:
    pipeline = msgspec.structs.replace(load_pipeline("echo", None), session_mode="turn")
    with AsyncOmni(pipeline=pipeline) as omni:
        return described(create_turn_app(omni, served_model_name=MODEL, api_key="secret"))


def test_every_route_of_a_server_of_turns_is_described(turns: dict[str, Any]) -> None:
    assert {path: set(methods) for path, methods in turns["paths"].items()} == {
        "/health": {"get"},
        "/metrics": {"get"},
        "/v1/models": {"get"},
        "/v1/models/{model}": {"get"},
        "/v1/chat/completions": {"post"},
        "/v1/audio/speech": {"post"},
        "/v1/audio/transcriptions": {"post"},
    }


def test_a_server_of_sessions_describes_what_it_serves_and_no_more(omni: FakeOmni) -> None:
    app = create_app(omni, served_model_name=MODEL)
    document = described(app)
    paths = {route.path.replace(":path", "") for route in app.routes if isinstance(route, Route)}

    refused = {"/v1/chat/completions", "/v1/audio/speech", "/v1/audio/transcriptions"}
    assert set(document["paths"]) == paths - PAGES - refused
    assert "/v1/realtime" in document["info"]["description"]


def test_bodies_are_those_that_are_read(turns: dict[str, Any]) -> None:
    schemas = turns["components"]["schemas"]
    chat = turns["paths"]["/v1/chat/completions"]["post"]
    reference = chat["requestBody"]["content"]["application/json"]["schema"]["$ref"]

    request = schemas[reference.rpartition("/")[2]]
    assert request["required"] == ["model", "messages"]
    assert request["properties"]["max_tokens"]["anyOf"][0]["maximum"] == 2**31 - 1
    assert {"ChatCompletion", "ChatCompletionChunk", "ApiErrorBody"} <= set(schemas)


def test_a_model_is_the_one_that_is_there(turns: dict[str, Any]) -> None:
    the_one = {"type": "string", "enum": [MODEL]}
    paths, schemas = turns["paths"], turns["components"]["schemas"]

    assert schemas["SpeechBody"]["properties"]["model"] == the_one
    assert schemas["ChatCompletionRequest"]["properties"]["model"] == the_one
    form = paths["/v1/audio/transcriptions"]["post"]["requestBody"]["content"]
    assert form["multipart/form-data"]["schema"]["properties"]["model"] == the_one
    assert paths["/v1/models/{model}"]["get"]["parameters"][0]["schema"] == the_one


def test_the_key_is_asked_for_under_v1_alone(turns: dict[str, Any], omni: FakeOmni) -> None:
    guarded = {
        path
        for path, methods in turns["paths"].items()
        for operation in methods.values()
        if operation.get("security")
    }
    assert guarded == {path for path in turns["paths"] if path.startswith("/v1/")}
    assert turns["components"]["securitySchemes"]["key"]["scheme"] == "bearer"

    assert "securitySchemes" not in described(create_app(omni))["components"]
