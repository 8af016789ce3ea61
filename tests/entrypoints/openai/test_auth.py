from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.fake_omni import FakeOmni
from tests.entrypoints.talk import Talk, offer
from websockets.exceptions import InvalidStatus

from omniduplex.entrypoints.openai.app import TURN_PATHS, create_app

KEY = "sk-s\u00e9cret"
# A header is bytes; HTTP libraries send text as latin-1, and we compare UTF-8 bytes.
HEADER_KEY = KEY.encode().decode("latin-1")
SOCKETS = ("/v1/realtime", "/v1/duplex?model=m")
WRONG: dict[str, dict[str, Any]] = {
    "no key": {},
    "a wrong key": {"additional_headers": {"Authorization": "Bearer nope"}},
    "an empty key": {"additional_headers": {"Authorization": "Bearer "}},
    "another scheme": {"additional_headers": {"Authorization": f"Basic {HEADER_KEY}"}},
    "a long key": {"additional_headers": {"Authorization": "Bearer " + "k" * 1_000_000}},
    "a wrong subprotocol": {"subprotocols": offer("realtime", "openai-insecure-api-key.nope")},
}


@pytest.fixture
def guarded(omni: FakeOmni, serve_app: ServeApp) -> str:
    return serve_app(create_app(omni, api_key=KEY))


@pytest.mark.e2e
@pytest.mark.parametrize("path", SOCKETS)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_key_is_refused_before_the_upgrade(
    guarded: str, omni: FakeOmni, path: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidStatus) as refused, Talk(guarded, path, **WRONG[name]):
        pass

    response = refused.value.response
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert b'"code":"invalid_api_key"' in bytes(response.body or b"")
    assert omni.opened.empty()
    assert [line for line in caplog.records if line.levelno >= logging.WARNING] == []


@pytest.mark.e2e
def test_b67_a_key_in_the_url_does_not_count_and_is_not_logged(
    guarded: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(InvalidStatus), Talk(guarded, "/v1/realtime?api_key=sk-SEEN"):
        pass
    header = {"Authorization": f"Bearer {HEADER_KEY}"}
    with Talk(guarded, "/v1/realtime?api_key=sk-SEEN", additional_headers=header) as talk:
        talk.recv()

    server_lines = [line for line in caplog.records if not line.name.startswith("websockets")]
    assert server_lines
    assert all("sk-SEEN" not in line.getMessage() for line in server_lines)
    assert all(HEADER_KEY not in line.getMessage() for line in server_lines)


@pytest.mark.e2e
@pytest.mark.parametrize("path", SOCKETS)
def test_the_key_opens_as_a_header(guarded: str, path: str) -> None:
    header = {"Authorization": f"bearer {HEADER_KEY}"}
    with Talk(guarded, path, additional_headers=header) as talk:
        assert talk.recv()["type"] == "session.created"


@pytest.mark.e2e
def test_the_key_opens_as_a_subprotocol(omni: FakeOmni, serve_app: ServeApp) -> None:
    base = serve_app(create_app(omni, api_key="plain-key"))
    offered = offer("realtime", "openai-insecure-api-key.plain-key")
    with Talk(base, "/v1/realtime", subprotocols=offered) as talk:
        assert talk.socket.subprotocol == "realtime"
        assert talk.recv()["type"] == "session.created"


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/x", "/v1/nothing", *TURN_PATHS])
def test_b65_every_v1_route_asks_for_the_key(omni: FakeOmni, path: str) -> None:
    client = TestClient(create_app(omni, api_key="k"))
    assert client.get(path).status_code == 401
    assert client.post(path, headers={"Authorization": "Bearer no"}).status_code == 401
    assert client.get(path, headers={"Authorization": "Bearer k"}).status_code != 401


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_what_operators_ask_is_open(omni: FakeOmni, path: str) -> None:
    assert TestClient(create_app(omni, api_key="k")).get(path).status_code == 200


def test_without_a_key_set_any_key_will_do(omni: FakeOmni) -> None:
    client = TestClient(create_app(omni))
    assert client.get("/v1/models", headers={"Authorization": "Bearer any"}).status_code == 200
    assert client.get("/v1/models").status_code == 200
