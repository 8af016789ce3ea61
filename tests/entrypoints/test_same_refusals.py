"""What is wrong with a session object is told by the same names in Python and over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.talk import Talk

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.protocol.duplex import DuplexError

pytestmark = pytest.mark.e2e

WRONG: tuple[dict[str, Any], ...] = (
    {"turn_detection": {"type": "telepathy"}},
    {"audio": {"input": {"turn_detection": {"type": "telepathy"}}}},
    {"audio": {"input": {"format": "opus"}}},
    {"input_audio_format": "opus"},
    {"output_audio_format": "opus"},
    {"temperature": -1},
    {"temperature": "hot"},
    {"tools": [{"type": "hammer"}]},
    {"tool_choice": {"type": "hammer"}},
    {"modalities": ["smell"]},
    {"max_output_tokens": 0},
    {"ref_audio": "data:audio/wav;base64,"},
)


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    with DuplexOmni("omniduplex/echo") as omni:
        yield omni


@pytest.fixture
def base(omni: DuplexOmni, serve_app: ServeApp) -> str:
    return serve_app(create_app(omni))


async def refusals(omni: DuplexOmni, wrong: dict[str, Any]) -> list[tuple[str, str | None]]:
    """What an open and an update say in Python."""
    with pytest.raises(DuplexError) as opening:
        await omni.open_session(wrong)
    async with await omni.open_session() as session:
        await session.update({"instructions": "Be brief."})
        found = [(opening.value.code, opening.value.param)]
        try:
            await session.update(wrong)
        except DuplexError as refused:
            return [*found, (refused.code, refused.param)]
        async for event in session.events():
            if event.type == "error":
                told = event.raw["error"]
                return [*found, (told["code"], told.get("param"))]
    raise AssertionError("it was not refused")


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_python_and_the_wire_tell_the_same(
    omni: DuplexOmni, base: str, wrong: dict[str, Any]
) -> None:
    with Talk(base, "/v1/duplex") as talk:
        talk.send("session.update", session={"model": "omniduplex/echo", **wrong})
        (opening,), _, _ = talk.ends()
    with Talk(base, "/v1/duplex?model=omniduplex/echo") as talk:
        talk.until("session.updated")
        talk.send("session.update", session=wrong)
        update = talk.until("error")[-1]

    told = [(event["error"]["code"], event["error"].get("param")) for event in (opening, update)]
    assert asyncio.run(refusals(omni, wrong)) == told
    assert not str(told[0][1]).startswith("session.")
