from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest
from tests.e2e.recordings import RATE_HZ, recording
from tests.e2e.server import Server, serve, serve_scripted
from tests.entrypoints.turn.sounds import tone
from tests.interop.drivers import DRIVERS, CallerFiles, Driver, Rounds
from tests.interop.tool_endpoint import tool_endpoint

from omniduplex.audio.resample import StreamResampler
from omniduplex.models.local.assets import AssetMissing, asset_path


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    """Each client; one that is not installed is skipped, except in CI."""
    driver: Driver = request.param
    if (lacks := driver.lacks()) is not None:
        if os.environ.get("CI"):
            pytest.fail(lacks)
        pytest.skip(lacks)
    return driver


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> CallerFiles:
    """A question and an interruption as every client sends audio by default: 24 kHz PCM16."""
    folder = tmp_path_factory.mktemp("speech")

    def write(name: str) -> Path:
        pcm = StreamResampler(RATE_HZ, 24_000).process(recording(name).pcm, last=True)
        path = folder / f"{name}.pcm"
        path.write_bytes(pcm)
        return path

    return CallerFiles(speech=write("capital"), barge=write("week"))


@pytest.fixture(scope="session")
def echo_files(files: CallerFiles, tmp_path_factory: pytest.TempPathFactory) -> CallerFiles:
    """A long question, since echo's answer is as long: a client finds the time to talk over it."""
    speech = tmp_path_factory.mktemp("tone") / "long.pcm"
    speech.write_bytes(tone(8000, rate=24_000))
    return CallerFiles(speech=speech, barge=files.barge)


@pytest.fixture(scope="session")
def rounds(
    echo_files: CallerFiles, echo_server: Server, paced_echo_server: Server
) -> Iterator[Rounds]:
    """Rounds with echo; they end before its servers do."""
    with ThreadPoolExecutor(len(DRIVERS)) as pool:
        yield Rounds(echo_files, pool)


@pytest.fixture(scope="session")
def echo_server() -> Iterator[Server]:
    with serve("omniduplex/echo") as server:
        yield server


@pytest.fixture(scope="session")
def paced_echo_server() -> Iterator[Server]:
    """Echo that speaks as time goes by, so that an answer can be stopped halfway."""
    deploy = resources.files("omniduplex.benchmarks") / "paced_echo.yaml"
    with serve("omniduplex/echo", "--deploy-config", str(deploy)) as server:
        yield server


@pytest.fixture(scope="session")
def weights() -> None:
    """The embedded models' weights; without them tests are skipped, except in CI."""
    try:
        asset_path("whisper_base")
    except AssetMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def local_server(weights: None) -> Iterator[Server]:
    """The embedded default, as `omniduplex serve` serves it."""
    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def scripted_server(weights: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The embedded default with a language model that tells a story, or calls the tool it has."""
    folder = tmp_path_factory.mktemp("deploy")
    with tool_endpoint() as base_url, serve_scripted(base_url, folder) as server:
        yield server
