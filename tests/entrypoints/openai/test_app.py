from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient
from tests.entrypoints.fake_omni import MODEL, FakeOmni

from omniduplex.entrypoints.openai.app import TURN_PATHS, create_app


@pytest.fixture
def client(omni: FakeOmni) -> TestClient:
    return TestClient(create_app(omni, clock=lambda: 1_700_000_000.9))


def test_models_lists_the_one_that_is_deployed(client: TestClient) -> None:
    card = {"id": MODEL, "object": "model", "created": 1_700_000_000, "owned_by": "omniduplex"}

    assert client.get("/v1/models").json() == {"object": "list", "data": [card]}
    assert client.get(f"/v1/models/{MODEL}").json() == card


def test_the_model_can_have_another_name(omni: FakeOmni) -> None:
    client = TestClient(create_app(omni, served_model_name="gpt-realtime"))
    assert client.get("/v1/models").json()["data"][0]["id"] == "gpt-realtime"


def test_an_unknown_model_is_not_found(client: TestClient) -> None:
    response = client.get("/v1/models/gpt-5")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


def test_health_tells_whether_the_engine_lives(client: TestClient, omni: FakeOmni) -> None:
    assert client.get("/health").json() == {"status": "ok", "active_sessions": 0}
    omni.alive = False
    assert client.get("/health").status_code == 503


def test_metrics_are_in_the_prometheus_format(client: TestClient) -> None:
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert "# TYPE omniduplex_sessions_open gauge" in response.text


@pytest.mark.parametrize("path", TURN_PATHS)
def test_turn_routes_say_that_they_are_not_here(client: TestClient, path: str) -> None:
    response = client.post(path, json={"model": MODEL})

    assert response.status_code == 404
    error = response.json()["error"]
    assert "not available in duplex mode" in error["message"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "unsupported")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", 404), ("DELETE", "/v1/models", 405), ("GET", "/v1/realtime", 404)],
)
def test_what_the_router_refuses_has_the_same_shape(
    client: TestClient, method: str, path: str, status: int
) -> None:
    response = client.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_stopping_the_app_closes_its_sessions(omni: FakeOmni) -> None:
    with TestClient(create_app(omni)) as client, client.websocket_connect("/v1/realtime") as socket:
        assert socket.receive_json()["type"] == "session.created"
        session = omni.opened.get(timeout=60)
    assert session.close_reason is not None
    assert omni.sessions == []


def test_the_talk_page_and_what_it_loads_are_served(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    assert loaded
    for path in loaded:
        assert client.get(path).status_code == 200, path


def test_the_talk_page_runs_nothing_from_elsewhere_and_in_nobodys_frame(
    client: TestClient,
) -> None:
    page = client.get("/")
    policy = dict(
        directive.split(" ", 1) for directive in page.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    # What the policy would stop: a script, a style or a handler in the document itself.
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page.text) == []
