"""One conversation gives the same events inline, over a WebSocket and from `DuplexOmni` itself."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest
from tests.clients.scripted import JumpingClock
from tests.entrypoints.running import running

from omniduplex.clients.duplex import DuplexClient, DuplexClientBase, InlineDuplexClient
from omniduplex.clients.echo import create_duplex_session_config
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    Commit,
    ContentPart,
    CreateItem,
    CreateResponse,
    DuplexCommand,
    ItemInput,
    ListenDecision,
    PlaybackAcknowledged,
    RateLimitsUpdated,
    RealtimeEvent,
    ResponseCreated,
    RetrieveItem,
)

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

MODEL = "omniduplex/echo"
CONFIG = create_duplex_session_config(auto_response=False, instructions="Say it back.")
# Ids, and what counts connections or reads a clock; everything else has to agree.
ID = re.compile(r"(duplex-|item_|item_resp_|resp_|call_|request_)[0-9a-f]{8,}")
OF_THE_DOOR = frozenset(
    {
        "attachment_generation",
        "disconnect_grace_s",
        "event_id",
        "expires_at",
        "response_request_metrics",
        "resume_token",
        "server_event_seq",
    }
)
Submit = Callable[[DuplexCommand], Awaitable[object]]


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    with DuplexOmni(MODEL) as omni:
        yield omni


class Script:
    """The client's part, and all that it hears."""

    def __init__(self, submit: Submit, events: AsyncIterator[Any]) -> None:
        self.heard: list[RealtimeEvent] = []
        self._submit = submit
        self._events = events

    async def play(self) -> None:
        """A spoken turn, its playback, a refusal, a written turn, an item.

        What the model says unasked races with what the client sends next, so each step waits for
        the model's last word.
        """
        await self._submit(AppendAudio(audio=tone(800), format="pcm16", sample_rate_hz=16000))
        await self._until(ListenDecision)
        await self._submit(Commit(response_create=True))
        await self._until_listening_again()
        name = next(e.response_id for e in self.heard if isinstance(e, ResponseCreated))
        await self._submit(AckPlayback(response_id=name, played_ms=200, committed_ms=200))
        await self._until(PlaybackAcknowledged)
        await self._submit(Commit(event_id="evt_refused"))
        text = ContentPart(type="input_text", text="Good bye.")
        await self._submit(CreateItem(item=ItemInput(type="message", role="user", content=(text,))))
        await self._submit(CreateResponse())
        await self._until_listening_again()
        await self._submit(RetrieveItem(item_id=f"item_{name}"))

    async def hear_the_rest(self) -> None:
        async for event in self._events:
            self.heard.append(event)

    async def _until_listening_again(self) -> None:
        await self._until(RateLimitsUpdated)
        await self._until(ListenDecision)

    async def _until(self, kind: type[RealtimeEvent]) -> None:
        async for event in self._events:
            self.heard.append(event)
            if isinstance(event, kind):
                return
        raise AssertionError(f"the events ended before {kind.__name__}")


def tone(ms: int) -> bytes:
    count = 16 * ms
    return struct.pack(f"<{count}h", *(int(8000 * math.sin(n / 4)) for n in range(count)))


async def by_client(client: DuplexClientBase) -> list[RealtimeEvent]:
    script = Script(client.send, client.events())
    async with client:
        await script.play()
    await script.hear_the_rest()
    return script.heard


async def directly(omni: DuplexOmni) -> list[RealtimeEvent]:
    session_object = msgspec.to_builtins(CONFIG.to_session_payload(model=MODEL))
    async with await omni.open_session(session_object) as session:
        script = Script(session.submit, session.events())
        await script.play()
    await script.hear_the_rest()
    return script.heard


def agreed(events: list[RealtimeEvent]) -> list[Any]:
    """Classes and wire objects, with ids by the order in which they appear."""
    names: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"{found[1]}{len(names)}")

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(one) for key, one in value.items() if key not in OF_THE_DOOR}
        if isinstance(value, list | tuple):
            return [clean(one) for one in value]
        return ID.sub(rename, value) if isinstance(value, str) else value

    return [(type(event).__name__, clean(event.to_realtime())) for event in events]


async def test_one_conversation_is_the_same_through_each_door(omni: DuplexOmni) -> None:
    direct = agreed(await directly(omni))
    inline = await by_client(
        InlineDuplexClient(omni, model=MODEL, config=CONFIG, clock=JumpingClock())
    )
    with running(create_app(omni)) as server:
        remote = await by_client(
            DuplexClient(
                server.base.replace("http", "ws"),
                model=MODEL,
                config=CONFIG,
                clock=JumpingClock(),
                heartbeat_interval_s=None,
            )
        )

    assert [name for name, _ in direct][:2] == ["SessionCreated", "SessionUpdated"]
    assert direct[-1][0] == "SessionClosed"
    assert [name for name, _ in direct].count("ResponseDone") == 2
    assert ("ErrorEvent", "input_audio_buffer_empty") in [
        (name, event.get("error", {}).get("code")) for name, event in direct
    ]
    assert agreed(inline) == direct
    assert agreed(remote) == direct
