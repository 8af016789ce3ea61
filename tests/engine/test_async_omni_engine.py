"""The engine on its own thread: requests in from any loop, outputs back to it."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.engine.stage_models import DoesNotLoad, Loud, Words

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.async_omni_engine import AsyncOmniEngine, StageFailed
from omniduplex.stages.errors import StageStartError
from omniduplex.stages.messages import StageInput
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
    return PipelineConfig(name="words", model="words", stages=stages)


@pytest.fixture
def engine() -> Iterator[AsyncOmniEngine]:
    running = AsyncOmniEngine(threads(Words, Loud))
    running.start()
    yield running
    running.shutdown()
    assert not running.alive


async def texts(engine: AsyncOmniEngine, request_id: str, text: str) -> list[str]:
    async with asyncio.timeout(20):
        request = StageInput(request_id, text=text)
        return [output.text async for output in engine.generate(request)]


def test_a_request_passes_both_stages(engine: AsyncOmniEngine) -> None:
    assert engine.alive
    assert asyncio.run(texts(engine, "r", "say it again")) == ["SAY", "IT", "AGAIN"]


def test_many_at_a_time_keep_apart(engine: AsyncOmniEngine) -> None:
    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*(texts(engine, f"r{n}", f"a{n} b{n}") for n in range(20)))

    assert asyncio.run(all_of_them()) == [[f"A{n}", f"B{n}"] for n in range(20)]


def test_a_stages_error_is_the_callers(engine: AsyncOmniEngine) -> None:
    with pytest.raises(StageFailed, match="asked to"):
        asyncio.run(texts(engine, "r", "fail"))
    assert asyncio.run(texts(engine, "r2", "still there")) == ["STILL", "THERE"]


def test_leaving_early_aborts_the_request(engine: AsyncOmniEngine) -> None:
    async def check() -> None:
        async with asyncio.timeout(20):
            outputs = engine.generate(StageInput("r", text="for ever"))
            async for _ in outputs:
                break
            await outputs.aclose()  # type: ignore[attr-defined]
        # The same id is free again: nothing of the old request is left to mix in.
        assert await texts(engine, "other", "next") == ["NEXT"]

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
        async with asyncio.timeout(20):
            outputs = engine.generate(StageInput("r", text="for ever"))
            async for _ in outputs:
                break
            await asyncio.to_thread(engine.shutdown)
            with pytest.raises(StageFailed, match="shutting down"):
                async for _ in outputs:
                    pass

    asyncio.run(check())


def test_the_id_of_a_running_request_is_refused(engine: AsyncOmniEngine) -> None:
    async def check() -> None:
        async with asyncio.timeout(20):
            first = engine.generate(StageInput("r", text="for ever"))
            async for _ in first:
                break
            with pytest.raises(StageFailed, match="is running"):
                await texts(engine, "r", "me too")
            await first.aclose()  # type: ignore[attr-defined]

    asyncio.run(check())
