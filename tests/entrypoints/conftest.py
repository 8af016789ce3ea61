from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from starlette.applications import Starlette
from tests.entrypoints.fake_omni import FakeOmni
from tests.entrypoints.running import running

from omniduplex.entrypoints.openai.app import create_app

ServeApp = Callable[[Starlette], str]


@pytest.fixture
def serve_app() -> Iterator[ServeApp]:
    """Serve an app by the real server on a free loopback port; returns its base URL."""
    with ExitStack() as servers:
        yield lambda app: servers.enter_context(running(app)).base


@pytest.fixture
def omni() -> FakeOmni:
    return FakeOmni()


@pytest.fixture
def base(omni: FakeOmni, serve_app: ServeApp) -> str:
    """A server around `omni`, with nothing else set."""
    return serve_app(create_app(omni))
