"""Whatever a client and the turn engine do, in whatever order, the conversation stays whole."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.entrypoints.turn.half_duplex import HalfDuplex

from omniduplex.engine.turns import TurnChunk, TurnToolCall
from omniduplex.entrypoints.openai.turn_realtime.effects import Ask, Hear
from omniduplex.protocol.duplex import (
    AppendAudio,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    Commit,
    CreateResponse,
    DeleteItem,
    ResponseOptions,
    RetrieveItem,
    TruncateItem,
)

CALL = TurnToolCall(call_id="c", name="look_up", arguments="{}")
CHUNKS = (
    TurnChunk(text="word "),
    TurnChunk(text="spoken ", pcm=bytes(480), sample_rate_hz=24_000),
    TurnChunk(text="slow ", pcm=bytes(480), sample_rate_hz=16_000),
    TurnChunk(pcm=bytes(480)),
    TurnChunk(tool_calls=(CALL,)),
    TurnChunk(finish_reason="stop"),
    TurnChunk(text="end", finish_reason="length"),
)


class Conversations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.talk = HalfDuplex()
        self.events: list[dict[str, Any]] = []
        self.created: list[str] = []
        self.done: list[str] = []
        self.items: list[str] = []
        self.shown: dict[str, dict[str, Any]] = {}

    # -- the client -------------------------------------------------------------------------

    @rule()
    def writes(self) -> None:
        self.talk.writes("hello")

    @rule(size=st.integers(0, 500))
    def appends(self, size: int) -> None:
        self.talk.send(AppendAudio(audio=bytes(size)))

    @rule(command=st.sampled_from([Commit(), ClearInput(), CancelResponse(), ClearOutputAudio()]))
    def says(self, command: Any) -> None:
        self.talk.send(command)

    @rule(
        modality=st.sampled_from(["audio", "text"]), conversation=st.sampled_from(["auto", "none"])
    )
    def asks(self, modality: str, conversation: str) -> None:
        options = ResponseOptions(output_modalities=(modality,), conversation=conversation)
        self.talk.send(CreateResponse(response=options))

    @rule(data=st.data(), kind=st.sampled_from([RetrieveItem, DeleteItem, TruncateItem]))
    def names_an_item(self, data: st.DataObject, kind: Any) -> None:
        item_id = data.draw(st.sampled_from([*self.items, "none"]))
        where = {"audio_end_ms": 5} if kind is TruncateItem else {}
        self.talk.send(kind(item_id=item_id, **where))

    # -- the engine -------------------------------------------------------------------------

    @rule(chunk=st.sampled_from(CHUNKS))
    def answers(self, chunk: TurnChunk) -> None:
        if self.talk.all(Ask):
            self.talk.answers(chunk)

    @rule()
    def breaks(self) -> None:
        if self.talk.all(Ask):
            self.talk.breaks("the voice broke")

    @rule(words=st.sampled_from(["", "good day"]))
    def hears(self, words: str) -> None:
        if self.talk.all(Hear):
            self.talk.hears(words)

    @rule()
    def fails_to_hear(self) -> None:
        if self.talk.all(Hear):
            self.talk.hears_nothing("it is loud")

    # -- what is true of all that is shown --------------------------------------------------

    @invariant()
    def every_response_ends_once_and_its_items_with_it(self) -> None:
        fresh = self.talk.shown()
        self.events += fresh
        for event in fresh:
            match event["type"]:
                case "response.created":
                    self.created.append(event["response"]["id"])
                case "response.done":
                    self.done.append(event["response"]["id"])
                    states = {item["status"] for item in event["response"]["output"]}
                    assert states <= {"completed", "incomplete"}
                case "conversation.item.added":
                    self.items.append(event["item"]["id"])
                    self.shown[event["item"]["id"]] = event["item"]
                case "conversation.item.done":
                    self.shown[event["item"]["id"]] = event["item"]
                case "conversation.item.deleted":
                    del self.shown[event["item_id"]]
        active = self.talk.conversation.answering
        assert self.created == self.done + ([active] if active else [])
        assert len(set(self.items)) == len(self.items)

    @invariant()
    def what_is_opened_is_closed(self) -> None:
        if self.talk.conversation.answering is None:
            for kind in ("response.output_item", "response.content_part"):
                opened = [e for e in self.events if e["type"] == f"{kind}.added"]
                closed = [e for e in self.events if e["type"] == f"{kind}.done"]
                assert len(opened) == len(closed)

    def teardown(self) -> None:
        """What the client was shown, and not told to be gone, is there, and as far as it was."""
        self.every_response_ends_once_and_its_items_with_it()
        for item_id, item in self.shown.items():
            self.talk.send(RetrieveItem(item_id=item_id))
            (event,) = self.talk.shown()
            assert event["type"] == "conversation.item.retrieved"
            assert event["item"]["status"] == item["status"]


Conversations.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, suppress_health_check=list(HealthCheck), deadline=None
)
TestConversations = Conversations.TestCase
