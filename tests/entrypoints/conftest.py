from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from tests.entrypoints.fake_omni import FakeOmni

from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.server import TalkServer, bind, server_config

ServeApp = Callable[[Starlette], str]


@pytest.fixture
def serve_app() -> Iterator[ServeApp]:
    """Serve an app by the real server on a free loopback port; returns its base URL."""
    running: list[tuple[TalkServer, threading.Thread]] = []

    def start(app: Starlette) -> str:
        listener = bind("127.0.0.1", 0)
        ready = threading.Event()
        server = TalkServer(server_config(app), app, ready.set, drain_timeout_s=0.0)

        def run() -> None:
            with listener:
                server.run(sockets=[listener])

        thread = threading.Thread(target=run, name="server")
        thread.start()
        running.append((server, thread))
        assert ready.wait(20)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def omni() -> FakeOmni:
    return FakeOmni()


@pytest.fixture
def base(omni: FakeOmni, serve_app: ServeApp) -> str:
    """A server around `omni`, with nothing else set."""
    return serve_app(create_app(omni))
