from __future__ import annotations

from collections.abc import Iterator

import msgspec
import openai
import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.turn.half_duplex import HalfDuplex

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.entrypoints.openai.turn_app import create_turn_app


@pytest.fixture(scope="session")
def echo() -> PipelineConfig:
    """The echo model, deployed for turns."""
    return msgspec.structs.replace(load_pipeline("echo", None), session_mode="turn")


@pytest.fixture(scope="session")
def turn_omni(echo: PipelineConfig) -> Iterator[AsyncOmni]:
    with AsyncOmni(pipeline=echo) as omni:
        yield omni


@pytest.fixture
def turn_base(turn_omni: AsyncOmni, serve_app: ServeApp) -> str:
    return serve_app(create_turn_app(turn_omni))


@pytest.fixture
def client(turn_base: str) -> Iterator[openai.OpenAI]:
    """The package as it is, of which only the address is ours."""
    with openai.OpenAI(base_url=f"{turn_base}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def talk() -> HalfDuplex:
    talk = HalfDuplex()
    talk.shown()
    return talk
