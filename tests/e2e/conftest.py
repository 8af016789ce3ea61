from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
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
