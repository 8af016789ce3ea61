"""A page that somebody's browser shows may not use a server that is not its own (S2)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.fake_omni import MODEL, FakeOmni
from tests.entrypoints.talk import Talk
from websockets.exceptions import InvalidStatus

from omniduplex.entrypoints.openai.app import TURN_PATHS, create_app
from omniduplex.entrypoints.openai.origin import ANY_ORIGIN

SOCKETS = ("/v1/realtime", "/v1/duplex?model=m")
FRIEND = "https://friend.example"
FOREIGN = ("https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", "", "http://")


def opens(base: str, path: str, **options: Any) -> bool:
    """Whether a session opens there, or is refused before the upgrade."""
    try:
        with Talk(base, path, **options) as talk:
            return bool(talk.recv()["type"] == "session.created")
    except InvalidStatus as refused:
        code = b'"code":"origin_not_allowed"'
        if refused.response.status_code != 403 or code not in bytes(refused.response.body or b""):
            raise
        return False


@pytest.mark.e2e
@pytest.mark.parametrize("path", SOCKETS)
def test_a_page_of_another_origin_is_refused_before_the_upgrade(
    base: str, omni: FakeOmni, path: str
) -> None:
    for origin in FOREIGN:
        assert not opens(base, path, additional_headers={"Origin": origin}), origin
    assert omni.opened.empty()


@pytest.mark.e2e
@pytest.mark.parametrize("path", SOCKETS)
def test_a_native_client_and_the_servers_own_page_are_let_in(base: str, path: str) -> None:
    assert opens(base, path)
    assert opens(base, path, origin=base)
    assert opens(base, path, origin=base.replace("http", "https"))


@pytest.mark.parametrize("host", ["box.example:9000", "BOX.example:9000", "[::1]:8000"])
def test_a_forwarded_port_is_the_same_origin_by_its_own_name(omni: FakeOmni, host: str) -> None:
    client = TestClient(create_app(omni))
    headers = {"Host": host, "Origin": f"http://{host.lower()}"}
    with client, client.websocket_connect("/v1/realtime", headers=headers) as socket:
        assert socket.receive_json()["type"] == "session.created"
    assert client.post(TURN_PATHS[0], headers=headers).status_code != 403


@pytest.mark.e2e
def test_an_origin_can_be_allowed(omni: FakeOmni, serve_app: ServeApp) -> None:
    friendly = serve_app(create_app(omni, allowed_origins=[f"{FRIEND}/"]))
    assert opens(friendly, "/v1/realtime", origin=FRIEND)
    assert opens(friendly, "/v1/realtime", origin=friendly)
    assert not opens(friendly, "/v1/realtime", origin="https://evil.example")
    anybodys = serve_app(create_app(omni, allowed_origins=[ANY_ORIGIN]))
    assert opens(anybodys, "/v1/realtime", origin="https://evil.example")


def test_one_good_origin_does_not_cover_a_bad_one(omni: FakeOmni) -> None:
    client = TestClient(create_app(omni))
    both = [("Host", "h"), ("Origin", "http://h"), ("Origin", "https://evil.example")]
    assert client.post(TURN_PATHS[0], headers=httpx2.Headers(both)).status_code == 403
    assert client.post(TURN_PATHS[0], headers=httpx2.Headers(both[:2])).status_code != 403


@pytest.mark.parametrize("origin", ["http://[::1", "http://]", "http://[box]", "http://a]"])
def test_an_origin_that_is_no_url_is_a_foreign_one(omni: FakeOmni, origin: str) -> None:
    client = TestClient(create_app(omni))
    headers = {"Host": "[::1]:8000", "Origin": origin}
    assert client.post(TURN_PATHS[0], headers=headers).status_code == 403
    with pytest.raises(WebSocketDenialResponse) as refused:
        client.websocket_connect("/v1/realtime", headers=headers).__enter__()
    assert refused.value.status_code == 403


@pytest.mark.parametrize("path", TURN_PATHS)
def test_a_form_of_a_foreign_page_is_refused(omni: FakeOmni, path: str) -> None:
    client = TestClient(create_app(omni))
    foreign = {"Origin": "https://evil.example"}
    refused = client.post(path, headers=foreign, content="{}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
    assert client.post(path, json={}).status_code != 403


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/v1/models"])
def test_what_only_tells_is_open_to_all(omni: FakeOmni, path: str) -> None:
    client = TestClient(create_app(omni))
    response = client.get(path, headers={"Origin": "https://evil.example"})
    assert response.status_code == 200
    assert "access-control-allow-origin" not in response.headers


def test_a_key_does_not_open_to_foreign_pages(omni: FakeOmni) -> None:
    client = TestClient(create_app(omni, api_key="k"))
    headers = {"Origin": "https://evil.example", "Authorization": "Bearer k"}
    assert client.post(TURN_PATHS[0], headers=headers).status_code == 403


def test_an_allowed_page_may_read_what_it_asked_for(omni: FakeOmni) -> None:
    client = TestClient(create_app(omni, api_key="k", allowed_origins=[FRIEND]))
    asked = {
        "Origin": FRIEND,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    before = client.options(TURN_PATHS[0], headers=asked)
    models = client.get("/v1/models", headers={"Origin": FRIEND, "Authorization": "Bearer k"})

    assert before.status_code == 200
    assert before.headers["access-control-allow-origin"] == FRIEND
    assert models.json()["data"][0]["id"] == MODEL
    assert models.headers["access-control-allow-origin"] == FRIEND
