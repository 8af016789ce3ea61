"""Chat completions from a duplex deployment: the same engine, no session, no slot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import openai
import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.turn.sounds import MODEL

from omniduplex.config.errors import ConfigError
from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.entrypoints.cli.serve import build_app, load_omni
from omniduplex.entrypoints.duplex.recorder import ConversationRecorder
from omniduplex.entrypoints.duplex_omni import DuplexOmni


def deployed(stage_options: dict[str, bool]) -> PipelineConfig:
    """Echo, with room for one session."""
    pipeline = load_pipeline("echo", None)
    limits = msgspec.structs.replace(pipeline.duplex_session, max_sessions=1)
    (stage,) = pipeline.stages
    stage = msgspec.structs.replace(stage, options=stage_options)
    return msgspec.structs.replace(pipeline, duplex_session=limits, stages=(stage,))


@pytest.fixture
def stage_options() -> dict[str, bool]:
    return {}


@pytest.fixture
def duplex_omni(stage_options: dict[str, bool]) -> Iterator[DuplexOmni]:
    with DuplexOmni(pipeline=deployed(stage_options)) as omni:
        yield omni


@pytest.fixture
def client(duplex_omni: DuplexOmni, serve_app: ServeApp) -> Iterator[openai.OpenAI]:
    url = serve_app(build_app(duplex_omni))
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
        yield client


def ask(client: openai.OpenAI) -> str:
    stream = client.chat.completions.create(
        model=MODEL,
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "pcm16"},
        messages=[{"role": "user", "content": "hello"}],
        stream=True,
    )
    audio = [chunk.choices[0].delta.audio for chunk in stream]
    assert any(piece and piece.data for piece in audio)
    return "".join(piece.transcript or "" for piece in audio if piece)


def test_chat_needs_no_slot_and_takes_none(duplex_omni: DuplexOmni, client: openai.OpenAI) -> None:
    async def with_a_session() -> None:
        async with await duplex_omni.open_session() as session:
            assert await asyncio.to_thread(ask, client) == "You said hello"
            assert await duplex_omni.active_session_count() == 1
            assert not session.closed

    assert ask(client) == "You said hello"
    asyncio.run(with_a_session())
    assert asyncio.run(duplex_omni.active_session_count()) == 0
    assert asyncio.run(duplex_omni.active_turn_count()) == 0


def test_the_other_turn_routes_stay_away(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="not available in duplex mode"):
        client.audio.speech.create(model=MODEL, voice="alloy", input="hello")
    with pytest.raises(openai.NotFoundError, match="not available in duplex mode"):
        client.audio.transcriptions.create(model=MODEL, file=b"")


@pytest.mark.parametrize("stage_options", [{"self_start": True}, {"paced": True}])
def test_a_model_that_does_not_declare_it_answers_no_chat(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="not available in duplex mode"):
        ask(client)


def test_the_session_mode_chooses_the_door(tmp_path: Path) -> None:
    turns = msgspec.structs.replace(load_pipeline("echo", None), session_mode="turn")
    with load_omni(turns) as omni:
        assert type(omni).__name__ == "AsyncOmni"
        with pytest.raises(ConfigError, match="no conversations to record"):
            build_app(omni, recorder=ConversationRecorder(tmp_path))
    with load_omni(load_pipeline("echo", None)) as omni:
        assert type(omni).__name__ == "DuplexOmni"
