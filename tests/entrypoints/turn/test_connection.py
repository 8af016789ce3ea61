"""The shell around a half-duplex conversation: its tasks, its limits and its ends."""

from __future__ import annotations

import asyncio
import base64
import gc
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, cast

from starlette.applications import Starlette
from tests.engine.fake_pool import pipeline
from tests.entrypoints.turn.in_memory import Client, connected

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.turn_plugin import TurnFeatures
from omniduplex.engine.turns import TranscriptionRequest, TurnChunk, TurnRefused, TurnRequest
from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.openai.turn_realtime.service import TurnRealtimeService
from omniduplex.entrypoints.openai.turn_serving import TurnServing

PENDING_TURNS = 4
PIPELINE = pipeline(
    duplex_session=DuplexSessionRuntimeConfig(max_pending_turns_per_session=PENDING_TURNS)
)
DONE = TurnChunk(text="well", finish_reason="stop")
FEATURES = TurnFeatures(supports_chat_completions=True)
SHORT = 1000
HEARD = "conversation.item.input_audio_transcription.completed"


class ScriptedOmni:
    """Answers when it may, or raises what it was given."""

    turn_features = FEATURES
    pipeline = PIPELINE

    def __init__(self, error: Exception | None = None) -> None:
        self.may_answer = asyncio.Event()
        self.began = asyncio.Event()
        self._error = error

    async def generate(self, _: TurnRequest) -> AsyncGenerator[TurnChunk, None]:
        self.began.set()
        if self._error is not None:
            raise self._error
        await self.may_answer.wait()
        yield DONE


class SmallHouse:
    """Has room for few turns, as an engine has; hears long sounds when it may."""

    turn_features = TurnFeatures(supports_chat_completions=True, supports_transcription=True)
    pipeline = PIPELINE

    def __init__(self, max_turns: int) -> None:
        self.may_hear = asyncio.Event()
        self._room = max_turns

    async def generate(self, request: TurnRequest) -> AsyncGenerator[TurnChunk, None]:
        if not self._room:
            raise TurnRefused("rate_limit_exceeded", "the house is full")
        self._room -= 1
        try:
            if isinstance(request, TranscriptionRequest) and len(request.audio.pcm) > SHORT:
                await self.may_hear.wait()
            yield DONE
        finally:
            self._room += 1


def says_aloud(client: Client, size: int) -> None:
    client.says("input_audio_buffer.append", audio=base64.b64encode(bytes(size)).decode())
    client.says("input_audio_buffer.commit", event_id="here")


def served(omni: ScriptedOmni | SmallHouse, **limits: Any) -> Starlette:
    engine = cast(AsyncOmniBase[Any], omni)
    service = TurnRealtimeService(engine, "scripted", TurnServing(), **limits)
    return Starlette(routes=service.routes())


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test function of this coroutine function."""

    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


@in_a_loop
async def test_a_bug_is_told_before_the_connection_ends() -> None:
    async with connected(served(ScriptedOmni(RuntimeError("a bug")))) as client:
        client.asks("hello")
        assert (await client.until("error"))["error"]["code"] == "internal_error"
        assert await client.closed() == (1011, "internal_error")


@in_a_loop
async def test_a_client_is_read_however_long_its_answer_takes() -> None:
    omni = ScriptedOmni()
    async with connected(served(omni)) as client:
        client.says("session.update", session={"type": "realtime", "idle_timeout_s": 0.05})
        client.asks("hello")
        await omni.began.wait()
        for _ in range(3):  # it looks again each time that its patience is over
            await client.waits.get()
        client.says("response.cancel")
        done = (await client.until("response.done"))["response"]
        assert done["status_details"]["reason"] == "client_cancelled"
        assert await client.closed() == (1000, "idle_ttl_expired")


@in_a_loop
async def test_an_answer_that_is_stopped_before_it_began_leaves_nothing() -> None:
    async with connected(served(ScriptedOmni())) as client:
        for _ in range(20):
            client.asks("hello")
            client.says("response.cancel")
            await client.until("response.done")
        gc.collect()
        tasks = [one for one in gc.get_objects() if isinstance(one, asyncio.Task)]
        answers = [one for one in tasks if one.get_name() == "turn-realtime-answer"]
        assert len(answers) <= 1  # the last may be on its way out


@in_a_loop
async def test_there_is_an_end_to_the_conversations_at_a_time() -> None:
    app = served(ScriptedOmni(), max_conversations=1)
    async with connected(app) as first:
        await first.until("session.created")
        async with connected(app) as second:
            assert (await second.until("error"))["error"]["code"] == "resource_exhausted"
            assert await second.closed() == (1008, "resource_exhausted")
    async with connected(app) as third:
        await third.until("session.created")


@in_a_loop
async def test_a_client_of_many_commits_leaves_others_their_turns() -> None:
    house = SmallHouse(max_turns=2)
    app = served(house)
    async with connected(app) as greedy, connected(app) as other:
        for _ in range(300):
            says_aloud(greedy, SHORT + 2)
        for _ in range(300 - PENDING_TURNS):
            error = (await greedy.until("error"))["error"]
            assert (error["code"], error["event_id"]) == ("input_backpressure", "here")

        says_aloud(other, SHORT)
        other.says("response.create")
        assert (await other.until(HEARD))["transcript"] == "well"
        assert (await other.until("response.done"))["response"]["status"] == "completed"

        house.may_hear.set()
        for _ in range(PENDING_TURNS):
            await greedy.until(HEARD)
        says_aloud(greedy, SHORT)
        await greedy.until(HEARD)
