"""Sessions from Python, with the echo model on its real engine."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import msgspec
import pytest

from omniduplex.clients import AudioFormat, SessionConfig
from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexError,
    HeartbeatAck,
    RealtimeEvent,
    SessionClosed,
    SessionCreated,
    SessionPatch,
    SessionUpdated,
    default_config,
)

pytestmark = pytest.mark.anyio

MODEL = "omniduplex/echo"
CAPACITY = 2


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    pipeline = load_pipeline(MODEL, None)
    limits = msgspec.structs.replace(pipeline.duplex_session, max_sessions=CAPACITY)
    with DuplexOmni(pipeline=msgspec.structs.replace(pipeline, duplex_session=limits)) as omni:
        yield omni


async def test_the_session_object_of_the_handshake_opens_a_session(omni: DuplexOmni) -> None:
    wanted = {"instructions": "Be brief.", "audio": {"output": {"voice": "calm"}}}
    async with await omni.open_session(wanted) as session:
        events = session.events()
        created, updated = await anext(events), await anext(events)

        assert isinstance(created, SessionCreated)
        assert isinstance(updated, SessionUpdated)
        assert created.session.id == session.session_id
        assert (created.session.instructions, created.session.voice) == ("Be brief.", "calm")
        assert await session.public_session() == created.session


async def test_so_does_a_configuration(omni: DuplexOmni) -> None:
    config = msgspec.structs.replace(default_config(MODEL, Dialect.DUPLEX), temperature=0.5)
    async with await omni.open_session(config) as session:
        assert (await session.public_session()).temperature == 0.5


async def test_so_does_what_a_client_would_send(omni: DuplexOmni) -> None:
    config = SessionConfig(instructions="Be brief.", input_audio=AudioFormat("pcm_f32le", 24_000))
    async with await omni.open_session(config.to_session_payload(model=MODEL)) as session:
        opened = await session.public_session()
        assert (opened.instructions, opened.input_audio_format) == ("Be brief.", "pcm_f32le")


async def test_a_configuration_of_clients_itself_is_not_taken_for_a_session(
    omni: DuplexOmni,
) -> None:
    with pytest.raises(TypeError, match="to_session_payload"):
        await omni.open_session(cast(Any, SessionConfig(instructions="Be brief.")))
    assert await omni.active_session_count() == 0


@pytest.mark.parametrize(
    ("session_object", "code", "param"),
    [
        ({"temperature": "warm"}, "bad_event", "temperature"),
        (SessionPatch(temperature=cast(Any, "warm")), "bad_event", "temperature"),
        (
            {"output_audio_format": "opus"},
            "unsupported_audio_format",
            "output_audio_format",
        ),
        (
            {"turn_detection": {"type": "psychic"}},
            "unsupported_turn_detection",
            "turn_detection.type",
        ),
        ({"ref_audio": "data:audio/wav;base64,"}, "invalid_session_config", "ref_audio"),
    ],
)
async def test_a_wrong_session_object_is_refused_as_by_a_server(
    omni: DuplexOmni, session_object: dict[str, Any] | SessionPatch, code: str, param: str
) -> None:
    with pytest.raises(DuplexError) as refused:
        await omni.open_session(session_object)

    assert (refused.value.code, refused.value.param) == (code, param)
    assert await omni.active_session_count() == 0


async def test_open_sessions_are_known_by_their_ids(omni: DuplexOmni) -> None:
    async with await omni.open_session() as one, await omni.open_session() as two:
        assert omni.sessions == (one, two)
        assert omni.get_session(one.session_id) is one
        assert await omni.active_session_count() == 2
        with pytest.raises(DuplexError, match="limit=2") as refused:
            await omni.open_session()
        assert refused.value.code == "resource_exhausted"
    assert not omni.sessions
    with pytest.raises(DuplexError) as unknown:
        omni.get_session(one.session_id)
    assert unknown.value.code == "unknown_session"


async def test_nothing_keeps_a_handle_that_nobody_uses(omni: DuplexOmni) -> None:
    session_id = (await omni.open_session()).session_id
    gc.collect()

    assert not omni.sessions
    await omni.close_session(session_id)
    assert await omni.active_session_count() == 0


async def test_a_touch_is_answered(omni: DuplexOmni) -> None:
    async with await omni.open_session() as session:
        await omni.touch_session(session.session_id)
        assert await heard(session.events(), HeartbeatAck)


ASKED: dict[str, Callable[[DuplexOmni, str], Awaitable[object]]] = {
    "touch": lambda omni, name: omni.touch_session(name),
    "detach": lambda omni, name: omni.detach_session(name, expected_lease_generation=0),
    "describe": lambda omni, name: omni.describe_session(name),
    "close": lambda omni, name: omni.close_session(name),
    "resume": lambda omni, name: omni.resume_session(
        name, expected_lease_generation=0, control_id="one"
    ),
}


@pytest.mark.parametrize("ask", ASKED)
async def test_what_is_asked_of_a_session_that_is_not_there_is_refused(
    omni: DuplexOmni, ask: str
) -> None:
    async with await omni.open_session() as ended:
        pass
    for name in (ended.session_id, "duplex-nobody"):
        with pytest.raises(DuplexError) as refused:
            await ASKED[ask](omni, name)
        expected = "session_resume_expired" if ask == "resume" else "unknown_session"
        assert refused.value.code == expected
    with pytest.raises(DuplexError) as refused:
        await ended.public_session()
    assert refused.value.code == "unknown_session"
    await ended.close()
    assert ended.close_reason == "client_close"


async def test_a_detached_session_is_resumed_once_for_each_control_id(omni: DuplexOmni) -> None:
    async with await omni.open_session() as session:
        name = session.session_id
        await omni.detach_session(name, expected_lease_generation=0)
        for _ in range(2):
            generation = await omni.resume_session(
                name, expected_lease_generation=0, control_id="one"
            )
            assert generation == 1
        with pytest.raises(DuplexError) as late:
            await omni.detach_session(name, expected_lease_generation=0)
        assert late.value.code == "session_resume_conflict"


async def test_a_handle_knows_the_generation_of_its_lease(omni: DuplexOmni) -> None:
    async with await omni.open_session() as session, await omni.open_session() as other:
        name = session.session_id
        for control in ("one", "two", "three"):
            lease = session.lease_generation
            await omni.detach_session(name, expected_lease_generation=lease)
            made = await omni.resume_session(
                name, expected_lease_generation=lease, control_id=control
            )
            assert (made, session.lease_generation) == (lease + 1, lease + 1)
        again = await omni.resume_session(name, expected_lease_generation=0, control_id="one")
        assert (again, session.lease_generation) == (1, 3)
        with pytest.raises(DuplexError):
            await omni.resume_session(name, expected_lease_generation=0, control_id="late")
        assert (session.lease_generation, other.lease_generation) == (3, 0)


async def test_a_session_closes_by_its_id_and_tells_everybody(omni: DuplexOmni) -> None:
    session = await omni.open_session()
    waiting = asyncio.ensure_future(session.wait_closed())
    await omni.close_session(session.session_id, "maintenance")

    assert await waiting == "maintenance"
    assert session.closed
    last = [event async for event in session.events()][-1]
    assert isinstance(last, SessionClosed)
    assert last.reason == "maintenance"
    with pytest.raises(DuplexError) as refused:
        await session.heartbeat()
    assert refused.value.code == "session_closed"


async def test_all_sessions_close_at_once(omni: DuplexOmni) -> None:
    sessions = [await omni.open_session() for _ in range(CAPACITY)]
    await omni.close_all_sessions("shutdown")

    for session in sessions:
        assert isinstance([event async for event in session.events()][-1], SessionClosed)
        assert await session.wait_closed() == "shutdown"


async def test_events_have_one_consumer(omni: DuplexOmni) -> None:
    async with await omni.open_session() as session:
        first = session.events()
        await anext(first)
        await anext(first)
        waiting = asyncio.ensure_future(anext(first))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one consumer"):
            await anext(session.events())
        await session.heartbeat()
        assert isinstance(await waiting, HeartbeatAck)


async def test_an_open_that_takes_too_long_leaves_nothing_behind(omni: DuplexOmni) -> None:
    with pytest.raises(DuplexError, match="within 0 s") as late:
        await omni.open_session(timeout_s=0)

    assert late.value.code == "engine_error"
    async with await omni.open_session(), await omni.open_session():
        assert await omni.active_session_count() == CAPACITY


async def test_a_deployment_says_what_it_can_do(omni: DuplexOmni) -> None:
    assert omni.duplex_capabilities.supports_session_resume
    assert omni.duplex_session_config.max_sessions == CAPACITY
    async with await omni.open_session() as session:
        assert session.capabilities == omni.duplex_capabilities


async def heard(events: Any, kind: type[RealtimeEvent]) -> bool:
    async for event in events:
        if isinstance(event, kind):
            return True
    return False
