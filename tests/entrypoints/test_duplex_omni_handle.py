"""Each method of a session's handle sends one command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex_omni_engine import DuplexOmniEngine
from omniduplex.entrypoints.duplex_session_handle import DuplexSessionHandle
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    Commit,
    ContentPart,
    CreateItem,
    CreateResponse,
    DeleteItem,
    DuplexCapabilities,
    DuplexCommand,
    DuplexError,
    EventAck,
    Heartbeat,
    ItemInput,
    ResponseOptions,
    ResumeSession,
    RetrieveItem,
    SessionPatch,
    SignalTurn,
    TruncateItem,
    UpdateSession,
)

pytestmark = pytest.mark.anyio

ITEM = ItemInput(
    type="message", role="user", content=(ContentPart(type="input_text", text="Hello"),)
)
WIRE_ITEM = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hello"}],
}
Send = Callable[[DuplexSessionHandle], Awaitable[None]]

METHODS: dict[str, tuple[Send, DuplexCommand]] = {
    "append_audio": (
        lambda s: s.append_audio(b"ab", format="pcm16", sample_rate_hz=8000, is_speech=True),
        AppendAudio(audio=b"ab", format="pcm16", sample_rate_hz=8000, is_speech=True),
    ),
    "append_audio as configured": (lambda s: s.append_audio(b"ab"), AppendAudio(audio=b"ab")),
    "append_text": (lambda s: s.append_text("Hello"), AppendText(text="Hello")),
    "commit": (lambda s: s.commit(), Commit()),
    "commit for an answer": (
        lambda s: s.commit(create_response=True),
        Commit(response_create=True),
    ),
    "create_response": (lambda s: s.create_response(), CreateResponse()),
    "create_response with options": (
        lambda s: s.create_response(ResponseOptions(instructions="Sing.")),
        CreateResponse(response=ResponseOptions(instructions="Sing.")),
    ),
    "create_response of the wire": (
        lambda s: s.create_response({"instructions": "Sing."}),
        CreateResponse(response=ResponseOptions(instructions="Sing.")),
    ),
    "cancel_response": (lambda s: s.cancel_response("r"), CancelResponse(response_id="r")),
    "cancel_input": (lambda s: s.cancel_input(), CancelInput()),
    "barge_in": (lambda s: s.barge_in(), BargeIn()),
    "clear_input": (lambda s: s.clear_input(), ClearInput()),
    "clear_output_audio": (lambda s: s.clear_output_audio(), ClearOutputAudio()),
    "ack_playback": (
        lambda s: s.ack_playback(100, response_id="r", truncate=True),
        AckPlayback(played_ms=100, response_id="r", truncate=True),
    ),
    "signal_turn": (
        lambda s: s.signal_turn("user_idle", {"source": "camera"}),
        SignalTurn(event="user_idle", payload={"source": "camera"}),
    ),
    "signal_turn for a command": (lambda s: s.signal_turn("barge_in"), BargeIn()),
    "update": (
        lambda s: s.update(SessionPatch(voice=None)),
        UpdateSession(session=SessionPatch(voice=None)),
    ),
    "update of the wire": (
        lambda s: s.update({"voice": None}),
        UpdateSession(session=SessionPatch(voice=None)),
    ),
    "create_item": (
        lambda s: s.create_item(ITEM, previous_item_id="root"),
        CreateItem(item=ITEM, previous_item_id="root"),
    ),
    "create_item of the wire": (lambda s: s.create_item(WIRE_ITEM), CreateItem(item=ITEM)),
    "delete_item": (lambda s: s.delete_item("i"), DeleteItem(item_id="i")),
    "truncate_item": (
        lambda s: s.truncate_item("i", 250),
        TruncateItem(item_id="i", audio_end_ms=250),
    ),
    "retrieve_item": (lambda s: s.retrieve_item("i"), RetrieveItem(item_id="i")),
    "heartbeat": (lambda s: s.heartbeat(), Heartbeat()),
}


@pytest.fixture
def sent() -> list[DuplexCommand]:
    return []


@pytest.fixture
def session(sent: list[DuplexCommand]) -> DuplexSessionHandle:
    engine: Any = SimpleNamespace(
        capabilities=DuplexCapabilities(), submit_command=lambda _, command: sent.append(command)
    )
    link = DuplexSessionLink(
        "duplex-1", DuplexSessionRuntimeConfig(max_pending_input_bytes_per_session=64 * 1024)
    )
    return DuplexSessionHandle(cast("DuplexOmniEngine", engine), link)


@pytest.mark.parametrize("name", METHODS)
async def test_a_method_sends_its_command(
    session: DuplexSessionHandle, sent: list[DuplexCommand], name: str
) -> None:
    send, expected = METHODS[name]
    await send(session)

    assert sent == [expected]


async def test_what_is_wrong_with_a_mapping_is_said_at_once(
    session: DuplexSessionHandle, sent: list[DuplexCommand]
) -> None:
    with pytest.raises(DuplexError) as refused:
        await session.create_item({"type": "message", "content": 7})

    assert (refused.value.code, refused.value.param) == ("bad_event", "item.content")
    assert sent == []


@pytest.mark.parametrize(
    "send",
    [
        lambda s: s.append_audio("not bytes"),
        lambda s: s.submit(CreateItem(item=ItemInput(role=cast(Any, "bot")))),
        lambda s: s.submit(EventAck(server_event_seq=1)),
        lambda s: s.submit(ResumeSession(session_id="duplex-1", resume_token="rt_1")),
        lambda s: s.submit({"type": "input_audio_buffer.commit"}),
    ],
)
async def test_what_is_wrong_with_a_command_is_said_at_once(
    session: DuplexSessionHandle, sent: list[DuplexCommand], send: Send
) -> None:
    with pytest.raises((DuplexError, TypeError)):
        await send(session)

    assert sent == []


async def test_too_much_input_on_its_way_is_refused(
    session: DuplexSessionHandle, sent: list[DuplexCommand]
) -> None:
    await session.append_audio(bytes(64 * 1024))
    with pytest.raises(DuplexError) as refused:
        await session.append_audio(bytes(2))

    assert refused.value.code == "input_backpressure"
    assert len(sent) == 1
