from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.e2e.browser import (
    ScriptedServer,
    chromium,
    scripted_server,
    silence,
    talk_page,
    write_microphone,
)
from tests.e2e.server import Server, serve

from omniduplex.models.local.asr import Recognizer
from omniduplex.models.local.assets import AssetMissing, asset_path


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def recognizer() -> Recognizer:
    """The embedded recognizer; without weights tests are skipped, except in CI."""
    try:
        return Recognizer(asset_path("whisper_base"))
    except AssetMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def local_server(recognizer: Recognizer) -> Iterator[Server]:
    """The embedded default, as `omniduplex serve` serves it."""
    with serve() as server:
        yield server


@pytest.fixture(scope="session")
def echo_server() -> Iterator[Server]:
    with serve("omniduplex/echo") as server:
        yield server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that hears nobody."""
    wav = tmp_path_factory.mktemp("microphone") / "silence.wav"
    with chromium(write_microphone(wav, silence(1.0))) as browser:
        yield browser


@pytest.fixture
def served() -> Iterator[tuple[ScriptedServer, str]]:
    with scripted_server() as served:
        yield served


@pytest.fixture
def server(served: tuple[ScriptedServer, str]) -> ScriptedServer:
    return served[0]


@pytest.fixture
def page(browser: Browser, served: tuple[ScriptedServer, str]) -> Iterator[Page]:
    """The talk page before it is started."""
    with talk_page(browser, served[1]) as page:
        yield page
