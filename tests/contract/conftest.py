"""The echo model behind the real server, and callers of the three dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest
from starlette.applications import Starlette
from tests.contract.caller import Caller, call
from tests.entrypoints.conftest import serve_app  # noqa: F401 - the fixture of the real server
from tests.entrypoints.running import running

from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

ServeApp = Callable[[Starlette], str]


@pytest.fixture(scope="session")
def echo() -> Iterator[DuplexOmni]:
    pipeline = load_pipeline("omniduplex/echo", None)
    limits = msgspec.structs.replace(pipeline.duplex_session, max_sessions=4)
    with DuplexOmni(pipeline=msgspec.structs.replace(pipeline, duplex_session=limits)) as omni:
        yield omni


@pytest.fixture
def base(echo: DuplexOmni, serve_app: ServeApp) -> str:  # noqa: F811
    return serve_app(create_app(echo))


@pytest.fixture
def paced_base() -> Iterator[str]:
    """Echo whose answers take as long as they sound, by the audio that it hears meanwhile."""
    pipeline = load_pipeline("omniduplex/echo", None)
    (stage,) = pipeline.stages
    stage = msgspec.structs.replace(stage, options={"paced": True})
    pipeline = msgspec.structs.replace(pipeline, stages=(stage,))
    with DuplexOmni(pipeline=pipeline) as omni, running(create_app(omni)) as server:
        yield server.base


@pytest.fixture
def duplex(base: str) -> Iterator[Caller]:
    """The duplex dialect: the client ends turns and asks for answers."""
    with call(base, "duplex") as caller:
        yield caller


@pytest.fixture
def openai(base: str) -> Iterator[Caller]:
    """A stock client that ends turns by itself."""
    with call(base, "openai") as caller:
        caller.configure(audio={"input": {"turn_detection": None}})
        yield caller


@pytest.fixture
def beta(base: str) -> Iterator[Caller]:
    """A stock client of the beta that ends turns by itself."""
    with call(base, "beta") as caller:
        caller.configure(turn_detection=None)
        yield caller


@pytest.fixture(params=["duplex", "openai", "beta"])
def any_dialect(request: pytest.FixtureRequest) -> Caller:
    caller = request.getfixturevalue(request.param)
    assert isinstance(caller, Caller)
    return caller
