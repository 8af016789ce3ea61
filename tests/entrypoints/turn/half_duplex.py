"""A half-duplex conversation without a socket: events in, effects out, a test in between."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from omniduplex.engine.turns import AnswerRequest, TurnChunk, TurnUsage
from omniduplex.entrypoints.openai.turn_realtime.conversation import TurnConversation
from omniduplex.entrypoints.openai.turn_realtime.effects import (
    Ask,
    Effect,
    Emit,
    Hear,
    PartOfItem,
    Stop,
)
from omniduplex.entrypoints.openai.turn_realtime.prompt import answer_request
from omniduplex.entrypoints.openai.turn_realtime.service import half_duplex_config
from omniduplex.entrypoints.openai.turn_realtime.sound import render
from omniduplex.protocol.duplex import (
    ContentPart,
    CreateItem,
    CreateResponse,
    Dialect,
    DuplexCommand,
    ItemInput,
    ResponseOptions,
    decode_command,
    encode_event,
)

Found = TypeVar("Found", bound=Effect)

OFFICIAL: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
RATE = 24_000
MAX_PENDING_TURNS = 4
DONE = TurnChunk(finish_reason="stop", usage=TurnUsage(input_tokens=3, output_tokens=2))


def sound(ms: int) -> bytes:
    return bytes(ms * RATE // 1000 * 2)


def spoken(text: str, ms: int = 100, rate: int = RATE) -> TurnChunk:
    return TurnChunk(text=text, pcm=bytes(ms * rate // 1000 * 2), sample_rate_hz=rate)


class HalfDuplex:
    """Reads what is shown as a client of the OpenAI API sees it."""

    def __init__(self, *, transcribes: bool = True, dialect: Dialect = Dialect.OPENAI) -> None:
        counter = itertools.count()
        self.dialect = dialect
        self.conversation = TurnConversation(
            half_duplex_config("m", dialect),
            transcribes=transcribes,
            max_pending_turns=MAX_PENDING_TURNS,
            new_id=lambda prefix: f"{prefix}_{next(counter)}",
        )
        self.effects: list[Effect] = []
        self._seen = 0
        self._do(self.conversation.open())

    # -- saying -----------------------------------------------------------------------------

    def send(self, command: DuplexCommand) -> None:
        self._do(self.conversation.handle(command))

    def send_json(self, wire_type: str, **fields: Any) -> None:
        self.send(decode_command(msgspec.json.encode({"type": wire_type, **fields})))

    def writes(self, text: str, role: Any = "user") -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        part = ContentPart(type=kind, text=text)
        self.send(CreateItem(item=ItemInput(role=role, content=(part,))))

    def asks(self, **options: Any) -> Ask:
        """Ask for an answer; how the turn engine is asked for it."""
        self.send(CreateResponse(response=ResponseOptions(**options)))
        return self.last(Ask)

    def answers(self, *chunks: TurnChunk) -> None:
        """The engine's chunks for the newest request."""
        for chunk in chunks:
            self._do(self.conversation.take(self.last(Ask).response_id, chunk))

    def breaks(self, why: str) -> None:
        """The newest request cannot be finished."""
        self._do(self.conversation.failed(self.last(Ask).response_id, why))

    def hears(self, words: str, part: PartOfItem | None = None) -> None:
        """The words of a sound are found; of the newest if it is not said which."""
        self._do(self.conversation.heard(part or self.last(Hear).part, words))

    def hears_nothing(self, why: str, part: PartOfItem | None = None) -> None:
        self._do(self.conversation.unheard(part or self.last(Hear).part, why))

    def _do(self, effects: Iterable[Effect]) -> None:
        self.effects += effects

    # -- looking ----------------------------------------------------------------------------

    def all(self, kind: type[Found]) -> list[Found]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def last(self, kind: type[Found]) -> Found:
        return self.all(kind)[-1]

    @property
    def stopped(self) -> list[str]:
        return [effect.response_id for effect in self.all(Stop)]

    def request(self) -> AnswerRequest:
        """The newest turn request."""
        return answer_request(self.last(Ask))

    def shown(self) -> list[dict[str, Any]]:
        """What the client has got since the last look."""
        fresh, self._seen = self.all(Emit)[self._seen :], len(self.all(Emit))
        rendered = (render(effect.event, self.dialect) for effect in fresh)
        texts = [encode_event(one, event_id="e", seq=None) for one in rendered if one is not None]
        return [msgspec.json.decode(text) for text in texts]

    def types(self) -> list[str]:
        return [event["type"] for event in self.shown()]

    def one(self, wire_type: str) -> dict[str, Any]:
        (event,) = (event for event in self.shown() if event["type"] == wire_type)
        return event

    def error(self) -> dict[str, Any]:
        """The one refusal, and nothing else."""
        (event,) = self.shown()
        assert event["type"] == "error"
        error = event["error"]
        assert isinstance(error, dict)
        return error
