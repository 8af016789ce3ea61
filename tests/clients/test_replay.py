"""A replay keeps the recording's order of cause and effect, and speaks of the live things."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.benchmarks.stepping_clock import SteppingClock
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK
from websockets.frames import Close

from omniduplex.clients.duplex import DuplexConnectionError
from omniduplex.clients.recording import CloseFrame, Conversation, Direction, Entry, Header
from omniduplex.clients.replay import Replay, Replayed, replay, replay_url

HEADER = Header(created="now", url="/v1/duplex?model=m", model="m", dialect="duplex", server="0")
Answers = Callable[[dict[str, Any]], list[dict[str, Any]]]


class ScriptedSocket:
    """Answers each client event by a function; ends as it is told to."""

    def __init__(self, answer: Answers, first: list[dict[str, Any]] | None = None) -> None:
        self._answer = answer
        self._inbox: asyncio.Queue[str | Close | None] = asyncio.Queue()
        self.sent: list[str | bytes] = []
        self.closed: tuple[int, str] | None = None
        for event in first or []:
            self.say(event)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(message) for message in self.sent]

    def say(self, event: dict[str, Any]) -> None:
        self._inbox.put_nowait(json.dumps(event))

    def hang_up(self, frame: Close | None) -> None:
        self._inbox.put_nowait(frame)

    async def send(self, message: str | bytes, /) -> None:
        self.sent.append(message)
        try:
            event = json.loads(message)
        except ValueError:
            event = {}
        for answer in self._answer(event):
            self.say(answer)

    async def recv(self) -> str | bytes:
        message = await self._inbox.get()
        if isinstance(message, str):
            return message
        if self.closed is not None:
            frame = Close(*self.closed)
            raise ConnectionClosedOK(frame, frame, False)
        if message is None:
            raise ConnectionClosedError(None, None)
        raise ConnectionClosedOK(message, message, True)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        if self.closed is None:
            self.closed = (code, reason)
            self._inbox.put_nowait(None)


def silent(_: dict[str, Any]) -> list[dict[str, Any]]:
    return []


def heard(t: float, **event: Any) -> Entry:
    return Entry(t=t, dir="s2c", event=event)


def said(t: float, **event: Any) -> Entry:
    return Entry(t=t, dir="c2s", event=event)


def ended(t: float, direction: Direction, code: int, reason: str = "") -> Entry:
    return Entry(t=t, dir=direction, close=CloseFrame(code=code, reason=reason))


def play(
    entries: list[Entry],
    answer: Answers = silent,
    *,
    first: list[dict[str, Any]] | None = None,
    clock: SteppingClock | None = None,
    speed: float = 1.0,
    wait_s: float = 5.0,
    hang_up: Close | None = None,
) -> tuple[ScriptedSocket, Replayed]:
    async def run() -> tuple[ScriptedSocket, Replayed]:
        socket = ScriptedSocket(answer, first)
        if hang_up is not None:
            socket.hang_up(hang_up)
        recorded = Conversation(HEADER, tuple(entries))
        played = Replay(recorded, socket, clock or SteppingClock(), speed=speed, wait_s=wait_s)
        return socket, await played.run()

    return asyncio.run(run())


def test_messages_go_out_as_they_were_and_when_they_were() -> None:
    clock = SteppingClock()
    began = clock.now()
    times: list[float] = []

    def note(_: dict[str, Any]) -> list[dict[str, Any]]:
        times.append(clock.now() - began)
        return []

    entries = [
        said(1.0, type="barge_in", event_id="e"),
        Entry(t=2.0, dir="c2s", text="{"),
        Entry(t=4.0, dir="c2s", binary=b"\x00"),
    ]
    socket, _ = play(entries, note, clock=clock, speed=2.0)

    assert socket.sent == ['{"type":"barge_in","event_id":"e"}', "{", b"\x00"]
    assert times == [0.5, 1.0, 2.0]


def test_the_servers_ids_are_the_live_ones_by_order_of_creation() -> None:
    entries = [
        heard(0, type="response.created", response={"id": "r1"}),
        heard(0, type="conversation.item.added", item={"id": "i1"}, previous_item_id=None),
        heard(0, type="response.created", response={"id": "r2"}),
        said(1, type="playback.ack", response_id="r2", item_id="i1", played_ms=10),
        said(1, type="conversation.item.retrieve", item_id="i_never_seen"),
    ]
    live: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "R1"}},
        {"type": "conversation.item.added", "item": {"id": "I1"}, "previous_item_id": None},
        {"type": "response.created", "response": {"id": "R2"}},
    ]
    socket, _ = play(entries, first=live)

    assert [(e.get("response_id"), e["item_id"]) for e in socket.events] == [
        ("R2", "I1"),
        (None, "i_never_seen"),
    ]


def test_an_id_that_the_client_chose_counts_for_none_of_the_servers() -> None:
    entries = [
        said(0, type="conversation.item.create", item={"id": "mine"}),
        heard(0, type="conversation.item.added", item={"id": "mine"}),
        heard(0, type="conversation.item.added", item={"id": "i1"}),
        said(1, type="conversation.item.delete", item_id="i1"),
        said(1, type="conversation.item.delete", item_id="mine"),
    ]

    def answer(event: dict[str, Any]) -> list[dict[str, Any]]:
        if event["type"] != "conversation.item.create":
            return []
        items = [{"id": "I1"}, event["item"]]  # the other way round
        return [{"type": "conversation.item.added", "item": item} for item in items]

    socket, _ = play(entries, answer)

    assert [event["item_id"] for event in socket.events[1:]] == ["I1", "mine"]


def test_an_event_waits_for_what_the_client_had_seen() -> None:
    entries = [
        said(0.0, type="response.create"),
        heard(0.1, type="response.created", response={"id": "r1"}),
        said(0.2, type="response.cancel", response_id="r1"),
        heard(0.3, type="response.done", response={"id": "r1"}),
    ]

    async def run() -> list[dict[str, Any]]:
        socket = ScriptedSocket(silent)
        recorded = Conversation(HEADER, tuple(entries))
        played = Replay(recorded, socket, SteppingClock(), speed=1.0, wait_s=5.0)
        task = asyncio.create_task(played.run())
        for _ in range(20):
            await asyncio.sleep(0)
        before = [event["type"] for event in socket.events]
        socket.say({"type": "response.created", "response": {"id": "R1"}})
        socket.say({"type": "response.done", "response": {"id": "R1"}})
        await task
        assert before == ["response.create"]
        return socket.events

    assert asyncio.run(run())[-1] == {"type": "response.cancel", "response_id": "R1"}


def test_a_wait_in_vain_is_told_once_and_holds_up_nothing_else() -> None:
    entries = [
        heard(0, type="session.created"),
        heard(0, type="overlap.decision"),
        said(1, type="barge_in"),
        said(2, type="barge_in"),
    ]
    socket, played = play(entries, first=[{"type": "session.created"}], wait_s=0.01)

    assert played.vain_waits == ("before barge_in: 1 overlap.decision",)
    assert len(socket.sent) == 2


def test_an_answer_that_is_shorter_here_is_not_waited_for() -> None:
    entries = [
        heard(0, type="response.created", response={"id": "r1"}),
        *(heard(0, type="response.output_audio.delta", response_id="r1") for _ in range(9)),
        heard(0, type="response.done", response={"id": "r1"}),
        said(1, type="playback.ack", response_id="r1", played_ms=700),
    ]
    live: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "R1"}},
        {"type": "response.output_audio.delta", "response_id": "R1"},
        {"type": "response.done", "response": {"id": "R1"}},
    ]
    _, played = play(entries, first=live)

    assert played.vain_waits == ()


def test_an_acknowledgement_never_runs_ahead_of_the_live_events() -> None:
    entries = [
        heard(0, type="session.created", server_event_seq=1),
        *(heard(0, type="x.delta", server_event_seq=n) for n in range(2, 9)),
        said(1, type="session.event_ack", server_event_seq=8),
        said(1, type="session.event_ack", server_event_seq=9999),
    ]
    socket, _ = play(entries, first=[{"type": "session.created", "server_event_seq": 1}])

    assert [event["server_event_seq"] for event in socket.events] == [1, 9999]


def test_a_client_that_closed_closes_again_with_a_code_that_may_be_sent() -> None:
    for code, sent in ((1000, 1000), (4001, 4001), (1006, 1000)):
        socket, played = play([ended(1, "c2s", code, "bye")])

        assert socket.closed == (sent, "bye")
        assert played.conversation.end is None


def test_a_server_that_closes_is_recorded_and_ends_the_replay() -> None:
    entries = [said(0, type="session.close"), ended(1, "s2c", 1000, "client_close")]
    _, played = play(entries, hang_up=Close(1008, "resource_exhausted"))

    assert played.conversation.end is not None
    assert played.conversation.end.close == CloseFrame(code=1008, reason="resource_exhausted")


def test_the_same_path_on_another_server_for_another_model() -> None:
    assert replay_url("wss://h:1/other", HEADER, None) == "wss://h:1/v1/duplex?model=m"
    assert replay_url("ws://h:1", HEADER, "a/b") == "ws://h:1/v1/duplex?model=a%2Fb"


def test_a_key_and_the_beta_header_go_with_the_connection() -> None:
    seen: list[tuple[str, dict[str, str]]] = []

    async def connect(url: str, headers: dict[str, str]) -> ScriptedSocket:
        seen.append((url, headers))
        return ScriptedSocket(silent)

    header = Header(
        created="now", url="/v1/realtime", model="m", dialect="openai", beta=True, server="0"
    )
    recorded = Conversation(header, ())
    asyncio.run(replay(recorded, "ws://h", SteppingClock(), api_key="k", connect=connect))

    assert seen == [
        ("ws://h/v1/realtime", {"Authorization": "Bearer k", "OpenAI-Beta": "realtime=v1"})
    ]


def test_no_server_is_a_connection_error() -> None:
    async def refuse(*_: object) -> ScriptedSocket:
        raise ConnectionRefusedError("nobody there")

    recorded = Conversation(HEADER, ())
    with pytest.raises(DuplexConnectionError, match="nobody there"):
        asyncio.run(replay(recorded, "ws://h", SteppingClock(), connect=refuse))
