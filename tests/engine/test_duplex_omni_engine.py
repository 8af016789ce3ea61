"""Sessions on the engine's thread, opened and closed from another loop."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from tests.engine.fake_pool import pipeline
from tests.models.echo.driver import echo_pipeline

from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import DuplexSessionRuntimeConfig, PipelineConfig
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex_omni_engine import DuplexOmniEngine
from omniduplex.engine.turn_plugin import TurnFeatures
from omniduplex.engine.turns import SpeechRequest, TurnRefused
from omniduplex.protocol.duplex import (
    ConversationCreated,
    Dialect,
    DuplexError,
    DuplexEvent,
    Heartbeat,
    HeartbeatAck,
    SessionClosed,
    SessionCreated,
    SessionUpdated,
    default_config,
)

LIMITS = DuplexSessionRuntimeConfig(max_sessions=2)
CONFIG = default_config("omniduplex/echo", Dialect.DUPLEX)


def echo() -> PipelineConfig:
    """The echo model in a thread, with two slots."""
    deployed = echo_pipeline()
    stages = tuple(msgspec.structs.replace(stage, worker="thread") for stage in deployed.stages)
    return msgspec.structs.replace(deployed, stages=stages, duplex_session=LIMITS)


class Door:
    """An engine, and what is read from its sessions."""

    def __init__(self) -> None:
        self.engine = DuplexOmniEngine(echo())

    async def open(self, name: str) -> DuplexSessionLink:
        link = DuplexSessionLink(name, LIMITS)
        await self.engine.open_session(link, CONFIG)
        assert isinstance(await link.output.get(), SessionCreated)
        assert isinstance(await link.output.get(), ConversationCreated)
        assert isinstance(await link.output.get(), SessionUpdated)
        return link

    async def next(self, link: DuplexSessionLink) -> DuplexEvent:
        return await link.output.get()


def running(check: Callable[[Door], Awaitable[None]]) -> None:
    async def main(door: Door) -> None:
        async with asyncio.timeout(60):
            await check(door)

    door = Door()
    door.engine.start()
    try:
        asyncio.run(main(door))
    finally:
        door.engine.shutdown()


def test_commands_go_in_and_events_come_out() -> None:
    async def check(door: Door) -> None:
        link = await door.open("a")
        door.engine.submit_command("a", Heartbeat())
        assert await door.next(link) == HeartbeatAck(session_id="a")

    running(check)


def test_a_close_returns_when_the_slot_is_free() -> None:
    async def check(door: Door) -> None:
        link = await door.open("a")
        await door.open("b")
        with pytest.raises(DuplexError) as refused:
            await door.open("c")
        assert refused.value.code == "resource_exhausted"

        await door.engine.close_session("a", "bye")
        assert await door.engine.active_sessions() == 1
        closed = await door.next(link)
        assert isinstance(closed, SessionClosed)
        assert closed.reason == "bye"
        await door.open("c")

    running(check)


def test_all_sessions_can_be_closed() -> None:
    async def check(door: Door) -> None:
        links = [await door.open("a"), await door.open("b")]
        await door.engine.close_all_sessions("maintenance")
        assert await door.engine.active_sessions() == 0
        for link in links:
            assert isinstance(await door.next(link), SessionClosed)

    running(check)


def test_a_cancelled_open_leaves_no_session_whenever_it_was_cancelled() -> None:
    async def check(door: Door) -> None:
        for turns in range(30):
            link = DuplexSessionLink(f"s{turns}", LIMITS)
            opening = asyncio.create_task(door.engine.open_session(link, CONFIG))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            (refused,) = await asyncio.gather(opening, return_exceptions=True)
            if refused is None:
                await door.engine.close_session(link.session_id, "came too soon")
        while await door.engine.active_sessions():
            pass  # the word that the last opens were given up is still on its way
        await door.open("a")
        await door.open("b")

    running(check)


def test_a_shutdown_closes_the_sessions() -> None:
    door = Door()
    door.engine.start()
    link = asyncio.run(door.open("a"))
    door.engine.shutdown()
    closed = asyncio.run(door.next(link))
    assert isinstance(closed, SessionClosed)
    assert closed.reason == "shutdown"


@pytest.mark.parametrize(
    ("deployed", "message"),
    [
        (pipeline(), "not deployed as a duplex model"),
        (msgspec.structs.replace(echo(), session_mode="turn"), "not deployed as a duplex model"),
        (pipeline(duplex_plugin="collections:OrderedDict"), "no DuplexModelPlugin"),
    ],
)
def test_only_duplex_models_have_sessions(deployed: PipelineConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DuplexOmniEngine(deployed)


def test_a_model_without_a_turn_plugin_takes_no_turns() -> None:
    engine = DuplexOmniEngine(echo())
    assert engine.turn_features == TurnFeatures()
    with pytest.raises(TurnRefused, match="takes no SpeechRequest"):
        next(engine.stream(SpeechRequest(text="hello")))
