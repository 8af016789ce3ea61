"""Turns that end otherwise: their client leaves, a stage fails, there is no room."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import openai
import pytest
from tests.engine.stage_models import Loud, Words
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.turn.watched import MODEL, WAIT_S, WatchedOmni, asking, one_turn_at_a_time

from omniduplex.entrypoints.openai.turn_app import create_turn_app


@pytest.fixture
def omni() -> Iterator[WatchedOmni]:
    """Two stages that give words back, louder, and take one turn at a time."""
    with WatchedOmni(one_turn_at_a_time(Words, Loud)) as omni:
        yield omni


@pytest.fixture
def address(omni: WatchedOmni, serve_app: ServeApp) -> str:
    return serve_app(create_turn_app(omni)).removeprefix("http://")


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"http://{address}/v1", api_key="x", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_ends_its_turn(
    omni: WatchedOmni, address: str, stream: bool
) -> None:
    with asking(address, "for ever", stream=stream):
        assert omni.began.wait(WAIT_S)
        assert not omni.ended.is_set()

    assert omni.ended.wait(WAIT_S)
    assert asyncio.run(omni.active_turn_count()) == 0


def test_a_stream_that_is_closed_ends_its_turn(omni: WatchedOmni, client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "for ever"}], stream=True
    )
    assert next(stream).choices[0].delta.content == "FOR"
    stream.close()

    assert omni.ended.wait(WAIT_S)
    assert asyncio.run(omni.active_turn_count()) == 0


def test_one_turn_too_many_is_told_to_come_later(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "for ever"}], stream=True
    ) as running:
        next(running)
        for stream in (True, False):
            with pytest.raises(openai.RateLimitError) as refused:
                client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": "me"}], stream=stream
                )
            assert refused.value.code == "rate_limit_exceeded"
            assert refused.value.type == "rate_limit_error"
            assert refused.value.response.headers["retry-after"] == "1"


@pytest.mark.parametrize("stream", [True, False])
def test_a_stage_that_fails_at_once_is_a_status(client: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.InternalServerError, match="asked to") as failed:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "fail"}], stream=stream
        )
    assert (failed.value.code, failed.value.type) == ("stage_failed", "server_error")


def test_a_stage_that_fails_later_ends_the_stream_with_its_error(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "too loud"}], stream=True
    )
    assert next(stream).choices[0].delta.content == "TOO"
    with pytest.raises(openai.APIError, match="it burst"):
        next(stream)


def test_what_the_model_refuses_names_the_parameter(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "refuse"}], stream=True
        )
    assert (refused.value.code, refused.value.param) == ("invalid_value", "messages")


def test_routes_that_the_model_does_not_serve_say_so(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.audio.speech.create(model=MODEL, voice="alloy", input="hello")
    assert refused.value.code == "unsupported"
