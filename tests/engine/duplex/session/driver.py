"""Drives one session by the words of its trade, without a loop, a clock or a thread."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

import numpy as np
from tests.engine.duplex.session.scripted_model import RATE_HZ, ScriptedModel, ScriptedPlugin
from tests.engine.duplex.session.scripted_turns import ScriptedTurns

from omniduplex.audio.pcm import byte_count
from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.model_events import (
    FunctionCall,
    Projected,
    ResponseAudio,
    ResponseEnded,
    ResponseFailed,
    ResponseText,
    UserSpeechResumed,
    UserSpeechStarted,
    UserTranscript,
    UserTranscriptFailed,
    UserTurnDraft,
    UserTurnEnded,
    UserTurnUnheard,
)
from omniduplex.engine.duplex.pending_input import PendingInput
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.effects import (
    Effect,
    Emit,
    Ended,
    Prepare,
    SetTimer,
    StartTurn,
)
from omniduplex.engine.duplex.session.engine_session import DuplexEngineSession
from omniduplex.engine.duplex.session.inputs import (
    AudioReady,
    SessionInput,
    StageResult,
    TimerFired,
    TurnPart,
)
from omniduplex.engine.messages import AbortTurn
from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.engine.turns import FinishReason, TurnChunk, TurnFailure
from omniduplex.protocol.duplex import (
    AppendAudio,
    AudioDelta,
    Commit,
    ContentPart,
    CreateItem,
    CreateResponse,
    DuplexEvent,
    DuplexSessionConfig,
    ErrorDetails,
    ErrorEvent,
    ItemInput,
    ResponseCreated,
    ResponseDone,
    ResponseOptions,
    TurnDetection,
)
from omniduplex.stages.messages import StageOutput

EventT = TypeVar("EventT")
SESSION_ID = "s1"
MODEL_RATE_HZ = 24_000
"""Of what the scripted model says; the session's output format has the same rate."""

LISTENING = DuplexSessionConfig(
    model="scripted",
    turn_detection=TurnDetection(),
    overlap_policy="barge_in_on_speech",
)
"""The server ends turns and answers them; speech interrupts."""

BY_HAND = DuplexSessionConfig(model="scripted")
"""The client commits turns and asks for answers."""

MAX_INPUT_BYTES = 1 << 20
MAX_TURNS = 4
LIMITS = DuplexSessionRuntimeConfig(
    max_pending_input_bytes_per_session=MAX_INPUT_BYTES, max_pending_turns_per_session=MAX_TURNS
)


def loud(ms: float, rate_hz: int = RATE_HZ) -> bytes:
    """Speech, as far as a level can tell: a square wave of a tenth of full scale."""
    samples = byte_count(ms, rate_hz) // 2
    return (np.where(np.arange(samples) % 100 < 50, 3000, -3000)).astype("<i2").tobytes()


def quiet(ms: float, rate_hz: int = RATE_HZ) -> bytes:
    """Silence."""
    return bytes(byte_count(ms, rate_hz))


class SessionDriver:
    """A session whose client and whose model are the test.

    `clock` is the session time in s. `log` holds every event so far, `effects` every effect,
    `preparing` the conversions that run off the loop, oldest first.
    """

    def __init__(
        self,
        config: DuplexSessionConfig = LISTENING,
        *,
        plugin: ScriptedPlugin | None = None,
        turns: ScriptedTurns | None = None,
    ) -> None:
        self.turns = turns
        self.plugin = plugin or ScriptedPlugin()
        self.model: ScriptedModel = self.plugin.model
        self.clock = 100.0
        self.pending = PendingInput()
        self.effects: list[Effect] = []
        self.log: list[DuplexEvent] = []
        self.preparing: list[Prepare] = []
        self.wakes_at: float | None = None
        self._shown = 0
        self._ids: Counter[str] = Counter()
        self.session = DuplexEngineSession(
            SessionCore(
                session_id=SESSION_ID,
                config=config,
                capabilities=self.plugin.capabilities(1),
                plugin=self.plugin,
                model=self.model,
                new_id=self._new_id,
                limits=LIMITS,
                opened_at=self.clock,
                turns=turns,
                pending=self.pending,
            )
        )
        self._take(self.session.open(self.clock))
        self.events()

    def _new_id(self, prefix: str) -> str:
        self._ids[prefix] += 1
        return f"{prefix}_{self._ids[prefix]}"

    def _take(self, effects: list[Effect]) -> None:
        self.effects += effects
        self.log += [effect.event for effect in effects if isinstance(effect, Emit)]
        self.preparing += [effect for effect in effects if isinstance(effect, Prepare)]
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.wakes_at = effect.at

    # -- what happens -----------------------------------------------------------------------

    def feed(self, item: SessionInput) -> None:
        """Any input of the session."""
        self._take(self.session.handle(item, self.clock))

    def send(self, command: SessionInput) -> None:
        """The client sends a command."""
        self.feed(command)

    def passes(self, ms: float) -> None:
        """Time goes by, and the timer that the session set goes off on its way."""
        end = self.clock + ms / 1000
        while self.wakes_at is not None and self.wakes_at <= end:
            self.clock = max(self.clock, self.wakes_at)
            self.wakes_at = None
            self.feed(TimerFired())
        self.clock = end

    def append(self, ms: float = 200, *, pcm: bytes | None = None, **hints: Any) -> None:
        """The client sends audio; speech unless `pcm` says otherwise."""
        self.send(AppendAudio(audio=loud(ms) if pcm is None else pcm, **hints))

    def commit(self, **fields: Any) -> None:
        """The client ends the user's turn."""
        self.send(Commit(**fields))

    def says(self, text: str, item_id: str | None = None) -> None:
        """The client types a message of the user."""
        part = ContentPart(type="input_text", text=text)
        self.send(CreateItem(item=ItemInput(id=item_id, content=(part,))))

    def converted(self, *, error: str | None = None) -> None:
        """The oldest large append that is still being converted is done."""
        prepare = self.preparing.pop(0)
        pcm = b"" if error else prepare.convert()
        self.feed(AudioReady(prepare.ticket, pcm, error))

    # -- beside the conversation ------------------------------------------------------------

    def asks_beside(self, **options: Any) -> str | None:
        """The client wants a response out of band; its turn, once there is one."""
        running = self.running
        options = {"output_modalities": ("text",), **options}
        self.send(CreateResponse(response=ResponseOptions(conversation="none", **options)))
        return next((turn_id for turn_id in self.running if turn_id not in running), None)

    def turn_says(self, turn_id: str | None, text: str = "", *, ms: float = 0) -> None:
        """A turn goes on: by audio of so many ms, or in writing."""
        pcm = bytes(byte_count(ms, MODEL_RATE_HZ))
        rate_hz = MODEL_RATE_HZ if pcm else 0
        self.turn_makes(turn_id, TurnChunk(text=text, pcm=pcm, sample_rate_hz=rate_hz))

    def turn_ends(self, turn_id: str | None, reason: FinishReason = "stop") -> None:
        """A turn is whole."""
        self.turn_makes(turn_id, TurnChunk(finish_reason=reason))

    def turn_makes(self, turn_id: str | None, part: TurnChunk | TurnFailure) -> None:
        """Anything that a turn makes."""
        assert turn_id is not None
        self.feed(TurnPart(turn_id, part))

    @property
    def running(self) -> list[str]:
        """Turns that were started and not stopped, whether they have ended by themselves or not."""
        turns: dict[str, None] = {}
        for effect in self.effects:
            match effect:
                case StartTurn(turn_id):
                    turns[turn_id] = None
                case AbortTurn(turn_id):
                    turns.pop(turn_id, None)
        return list(turns)

    # -- the model --------------------------------------------------------------------------

    def model_says(self, *events: Projected) -> None:
        """A stage output comes that means these events."""
        self.model.says = list(events)
        self.feed(StageResult(0, StageOutput("any")))

    def user_speaks(self, at_ms: int = 0) -> None:
        """The ear hears the user begin."""
        self.model_says(UserSpeechStarted(at_ms))

    def user_pauses(self, words: str) -> None:
        """The ear takes the user to be done, perhaps."""
        self.model_says(UserTurnDraft(words))

    def user_goes_on(self) -> None:
        """It was only a pause."""
        self.model_says(UserSpeechResumed())

    def user_turn_ends(self, words: str, at_ms: int = 1000) -> None:
        """The ear is sure that the user is done."""
        self.model_says(UserTurnEnded(at_ms, words))

    def user_turn(self, words: str) -> None:
        """A whole turn of the user."""
        self.user_speaks()
        self.user_turn_ends(words)

    def transcript(self, item_id: str, words: str, content_index: int = 0) -> None:
        """The words of a committed turn are known."""
        self.model_says(UserTranscript(item_id, words, 1.0, content_index))

    def unheard(self, item_id: str) -> None:
        """The words of a committed turn cannot be recognised."""
        self.model_says(UserTranscriptFailed(item_id, "the recogniser broke"))

    def user_turn_unheard(self, at_ms: int = 1000) -> None:
        """The ear is sure that the user is done, and that is all it knows."""
        self.model_says(UserTurnUnheard(at_ms, "the recogniser broke"))

    def model_audio(self, ms: float = 200, text: str = "", *, key: str | None = None) -> None:
        """The model speaks."""
        pcm = bytes(byte_count(ms, MODEL_RATE_HZ))
        self.model_says(ResponseAudio(self._key(key), pcm, MODEL_RATE_HZ, text))

    def model_text(self, text: str, *, key: str | None = None) -> None:
        """The model writes."""
        self.model_says(ResponseText(self._key(key), text))

    def model_calls(self, name: str = "look_up", *, call_id: str = "call_1") -> None:
        """The model calls a tool."""
        self.model_says(FunctionCall(self._key(None), call_id, name, '{"a": 1}'))

    def model_ends(self, reason: str = "stop", *, key: str | None = None) -> None:
        """The answer is whole."""
        self.model_says(ResponseEnded(self._key(key), reason))

    def model_fails(self) -> None:
        """The answer cannot be finished."""
        self.model_says(ResponseFailed(self._key(None), "out of words"))

    def answers(self, *parts: tuple[float, str]) -> None:
        """The model gives a whole answer: audio of so many ms with such words."""
        for ms, text in parts:
            self.model_audio(ms, text)
        self.model_ends()

    def _key(self, key: str | None) -> str:
        return self.key if key is None else key

    @property
    def key(self) -> str:
        """What the model calls the newest response it was asked for."""
        return self.model.keys[-1]

    # -- what came of it --------------------------------------------------------------------

    def events(self) -> list[DuplexEvent]:
        """Events since the last look."""
        shown, self._shown = self._shown, len(self.log)
        return self.log[shown:]

    def kinds(self) -> list[str]:
        """Names of the events since the last look."""
        return kinds(self.events())

    def of(self, kind: type[EventT]) -> list[EventT]:
        """All events of a kind."""
        return [event for event in self.log if isinstance(event, kind)]

    def last(self, kind: type[EventT]) -> EventT:
        """The newest event of a kind."""
        return self.of(kind)[-1]

    def error(self) -> ErrorDetails:
        """The newest refusal."""
        return self.last(ErrorEvent).error

    def deltas_of(self, response_id: str) -> int:
        """How many pieces of audio a response has shown."""
        return sum(delta.response_id == response_id for delta in self.of(AudioDelta))

    @property
    def open_responses(self) -> list[str]:
        """Responses that were created and have no ending."""
        ended = {event.response_id for event in self.of(ResponseDone)}
        created = [event.response_id for event in self.of(ResponseCreated)]
        return [response_id for response_id in created if response_id not in ended]

    @property
    def prompts(self) -> list[ResponsePrompt]:
        """What the model was asked, in order."""
        return self.model.prompts

    @property
    def said(self) -> list[tuple[str, str]]:
        """Role and text of the messages in the newest prompt."""
        return [(message.role, message.text) for message in self.prompts[-1].messages]

    @property
    def aborted(self) -> list[str]:
        """Keys of responses and drafts that the model was told to stop."""
        return self.model.cancelled

    @property
    def ended(self) -> bool:
        """Whether the runner was told that the session is over."""
        return any(isinstance(effect, Ended) for effect in self.effects)


def kinds(events: list[DuplexEvent]) -> list[str]:
    """Names of events."""
    return [type(event).__name__ for event in events]
