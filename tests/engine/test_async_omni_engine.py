"""The engine on its own thread: requests in from any loop, outputs back to it."""

import asyncio
from collections.abc import Iterator
from functools import partial

import msgspec
import pytest
from tests.engine.stage_models import DoesNotLoad, Loud, Words, say

from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine import async_omni_engine
from omniduplex.engine.async_omni_engine import AsyncOmniEngine, StageFailed
from omniduplex.engine.turns import SpeechRequest, TurnRefused
from omniduplex.engine.unread_parts import UnreadParts
from omniduplex.stages.errors import StageStartError
from omniduplex.stages.model import StageModel


def threads(*models: type[StageModel]) -> PipelineConfig:
    """A pipeline whose stages are threads."""
    stages = tuple(
        StageConfig(
            stage_id=index,
            name=model.__name__,
            model_class=f"{model.__module__}:{model.__name__}",
            worker="thread",
        )
        for index, model in enumerate(models)
    )
    return PipelineConfig(
        name="words",
        model="words",
        stages=stages,
        turn_plugin="tests.engine.stage_models:ForwardPlugin",
        session_mode="turn",
        max_turns=20,
    )


@pytest.fixture
def engine() -> Iterator[AsyncOmniEngine]:
    running = AsyncOmniEngine(threads(Words, Loud))
    running.start()
    yield running
    running.shutdown()
    assert not running.alive


async def texts(engine: AsyncOmniEngine, text: str) -> list[str]:
    async with asyncio.timeout(60):
        return [chunk.text async for chunk in engine.generate(say(text))]


def test_a_request_passes_both_stages(engine: AsyncOmniEngine) -> None:
    assert engine.alive
    assert asyncio.run(texts(engine, "say it again")) == ["SAY", "IT", "AGAIN"]


def test_many_at_a_time_keep_apart(engine: AsyncOmniEngine) -> None:
    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*(texts(engine, f"a{n} b{n}") for n in range(20)))

    assert asyncio.run(all_of_them()) == [[f"A{n}", f"B{n}"] for n in range(20)]


def test_a_stages_error_is_the_callers(engine: AsyncOmniEngine) -> None:
    with pytest.raises(StageFailed, match="asked to"):
        asyncio.run(texts(engine, "fail"))
    assert asyncio.run(texts(engine, "still there")) == ["STILL", "THERE"]


def test_leaving_early_aborts_the_request(engine: AsyncOmniEngine) -> None:
    async def check() -> None:
        async with asyncio.timeout(60):
            outputs = engine.generate(say("for ever"))
            async for _ in outputs:
                break
            await outputs.aclose()
            assert await engine.active_turns() == 0
        assert await texts(engine, "next") == ["NEXT"]

    asyncio.run(check())


def test_a_stage_that_does_not_load_is_told_at_the_start() -> None:
    engine = AsyncOmniEngine(threads(Words, DoesNotLoad))
    with pytest.raises(StageStartError, match="no weights"):
        engine.start()
    assert not engine.alive


def test_an_engine_that_is_gone_takes_nothing(engine: AsyncOmniEngine) -> None:
    engine.shutdown()

    async def work() -> None:
        return

    with pytest.raises(RuntimeError, match="not running"):
        asyncio.run(engine.call(work()))


def test_a_shutdown_ends_the_requests_that_are_open() -> None:
    engine = AsyncOmniEngine(threads(Words, Loud))
    engine.start()

    async def check() -> None:
        async with asyncio.timeout(60):
            outputs = engine.generate(say("for ever"))
            async for _ in outputs:
                break
            await asyncio.to_thread(engine.shutdown)
            with pytest.raises(StageFailed, match="shutting down"):
                async for _ in outputs:
                    pass

    asyncio.run(check())


def test_more_turns_than_there_is_room_for_are_refused() -> None:
    pipeline = msgspec.structs.replace(threads(Words, Loud), max_turns=1)
    engine = AsyncOmniEngine(pipeline)
    engine.start()

    async def check() -> None:
        async with asyncio.timeout(60):
            first = engine.generate(say("for ever"))
            async for _ in first:
                break
            with pytest.raises(TurnRefused, match="1 requests run already") as refused:
                await texts(engine, "me too")
            assert refused.value.code == "rate_limit_exceeded"
            await first.aclose()
            assert await texts(engine, "now me") == ["NOW", "ME"]

    asyncio.run(check())
    engine.shutdown()


def test_a_turn_that_its_stages_have_done_leaves_room_though_it_is_not_read() -> None:
    engine = AsyncOmniEngine(msgspec.structs.replace(threads(Words, Loud), max_turns=1))
    engine.start()

    async def check() -> None:
        async with asyncio.timeout(60):
            first = engine.generate(say("read me later"))
            read = [await anext(first)]
            while await engine.active_turns():
                pass
            assert await texts(engine, "now me") == ["NOW", "ME"]
            read += [chunk async for chunk in first]
            assert [chunk.text for chunk in read] == ["READ", "ME", "LATER"]
            await first.aclose()
            assert await texts(engine, "and again") == ["AND", "AGAIN"]
            second = engine.generate(say("for ever"))
            await anext(second)
            with pytest.raises(TurnRefused, match="1 requests run already"):
                await texts(engine, "too many")
            await second.aclose()

    asyncio.run(check())
    engine.shutdown()


def test_a_turn_that_is_not_read_is_given_up_and_leaves_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(async_omni_engine, "UnreadParts", partial(UnreadParts, max_bytes=4096))
    engine = AsyncOmniEngine(msgspec.structs.replace(threads(Words, Loud), max_turns=1))
    engine.start()

    async def check() -> None:
        async with asyncio.timeout(60):
            unread = engine.generate(say("word " * 100))
            await anext(unread)
            while await engine.active_turns():
                pass
            assert await texts(engine, "now me") == ["NOW", "ME"]
            with pytest.raises(StageFailed, match="it was not read"):
                async for _ in unread:
                    pass

    asyncio.run(check())
    engine.shutdown()


def test_what_the_model_does_not_take_is_refused_and_leaves_room(engine: AsyncOmniEngine) -> None:
    for _ in range(30):
        with pytest.raises(TurnRefused, match="words takes no SpeechRequest") as refused:
            next(engine.stream(SpeechRequest(text="hello")))
        assert refused.value.code == "unsupported"
    with pytest.raises(TurnRefused, match="told to") as refused:
        asyncio.run(texts(engine, "refuse"))
    assert (refused.value.code, refused.value.param) == ("invalid_value", "messages")


def test_a_caller_without_a_loop_gets_the_same(engine: AsyncOmniEngine) -> None:
    chunks = list(engine.stream(say("say it again")))
    assert [chunk.text for chunk in chunks] == ["SAY", "IT", "AGAIN"]
    assert [chunk.finished for chunk in chunks] == [False, False, True]
    with pytest.raises(StageFailed, match="asked to"):
        list(engine.stream(say("fail")))


def test_a_caller_without_a_loop_may_leave_early_too(engine: AsyncOmniEngine) -> None:
    chunks = engine.stream(say("for ever"))
    next(chunks)
    chunks.close()
    assert asyncio.run(engine.active_turns()) == 0


def test_an_engine_that_is_gone_takes_no_turn(engine: AsyncOmniEngine) -> None:
    engine.shutdown()
    with pytest.raises(StageFailed, match="not running"):
        list(engine.stream(say("hello")))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"session_mode": "duplex"}, "not deployed for turn requests"),
        ({"turn_plugin": None}, "not deployed for turn requests"),
        ({"turn_plugin": "tests.engine.stage_models:Words"}, "is no TurnPlugin"),
    ],
)
def test_a_wrong_deployment_is_told_before_the_start(
    fields: dict[str, str | None], message: str
) -> None:
    pipeline = msgspec.structs.replace(threads(Words, Loud), **fields)
    with pytest.raises(ConfigError, match=message):
        AsyncOmniEngine(pipeline)
