"""Any program is held twice, once with responses beside the conversation: it makes no difference.

What the client sees of the conversation, what the model is asked and told, and when the session
wants to be woken are the same, but for the ids; and what is beside keeps the contract as well.
"""

import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.engine.duplex.session.contract import ContractWatcher
from tests.engine.duplex.session.driver import (
    BY_HAND,
    LIMITS,
    LISTENING,
    SessionDriver,
    loud,
    quiet,
)
from tests.engine.duplex.session.programs import ENDS, PHONE, programs
from tests.engine.duplex.session.scripted_turns import ScriptedTurns

from omniduplex.engine.duplex.session.inputs import CloseRequest
from omniduplex.engine.turns import TurnChunk, TurnFailure, TurnToolCall
from omniduplex.protocol.duplex import (
    AckPlayback,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    CloseSession,
    CreateResponse,
    DeleteItem,
    DuplexEvent,
    DuplexSessionConfig,
    ErrorEvent,
    ItemInput,
    PlaybackAcknowledged,
    RateLimitsUpdated,
    ResponseCreated,
    ResponseDone,
    ResponseOptions,
    SessionPatch,
    TruncateItem,
    UpdateSession,
)

ADAPTIVE = msgspec.structs.replace(LISTENING, overlap_policy="adaptive")

AT_ONCE = LIMITS.max_out_of_band_responses_per_session
BESIDE = "beside"
"""The `event_id` of every command that the other session does not get."""
WORDS = st.sampled_from(["Yes. ", "One two three ", ""])
MS = st.sampled_from([0.0, 20.0, 1500.0])
WHICH = st.integers(0, 5)


class SameWords:
    """Writes events down with their ids numbered as they come."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, value: object) -> str:
        text = msgspec.json.encode(value).decode()
        return re.sub(r"(?:resp|item)_\d+", self._renamed, text)

    def _renamed(self, found: re.Match[str]) -> str:
        kind = found.group().partition("_")[0]
        return self._names.setdefault(found.group(), f"{kind}#{len(self._names)}")


class TwinMachine(RuleBasedStateMachine):
    """What client and model may do, in any order, in both sessions or in one of them."""

    config: DuplexSessionConfig

    @initialize()
    def open(self) -> None:
        self.turns = ScriptedTurns()
        self.full = SessionDriver(self.config, turns=self.turns)
        self.plain = SessionDriver(self.config)
        self.watchers = ContractWatcher(), ContractWatcher()
        self.words = SameWords(), SameWords()
        self.seen = 0, 0
        self.beside: list[str] = []

    def both(self, act: Callable[[SessionDriver], None]) -> None:
        act(self.full)
        act(self.plain)

    # -- in the conversation ----------------------------------------------------------------

    @rule(ms=st.sampled_from([20, 900, 2500]), speech=st.booleans())
    def append(self, ms: int, speech: bool) -> None:
        self.both(lambda driver: driver.append(pcm=loud(ms) if speech else quiet(ms)))

    @precondition(lambda self: self.plain.preparing)
    @rule()
    def conversion_is_done(self) -> None:
        self.both(lambda driver: driver.converted())

    @rule(answer=st.sampled_from([None, True, False]))
    def commit(self, answer: bool | None) -> None:
        self.both(lambda driver: driver.commit(response_create=answer))

    @rule(
        command=st.sampled_from(
            [
                ClearInput(),
                CancelInput(),
                BargeIn(),
                CancelResponse(),
                ClearOutputAudio(),
                CreateResponse(),
                CreateResponse(response=ResponseOptions(interruptible=False)),
                CreateResponse(response=ResponseOptions(output_modalities=("text",))),
                UpdateSession(session=SessionPatch(instructions="Rhyme.")),
                AckPlayback(played_ms=130),
                AckPlayback(played_ms=1e9),
            ]
        )
    )
    def command(self, command: CreateResponse) -> None:
        self.both(lambda driver: driver.send(command))

    @rule()
    def client_writes(self) -> None:
        self.both(lambda driver: driver.says("By the way"))

    @precondition(lambda self: self.watchers[1].order)
    @rule(which=WHICH, cut=st.booleans())
    def touch_item(self, which: int, cut: bool) -> None:
        for driver, watcher in zip((self.full, self.plain), self.watchers, strict=True):
            item_id = watcher.order[which % len(watcher.order)]
            if cut:
                driver.send(TruncateItem(item_id=item_id, audio_end_ms=20))
            else:
                driver.send(DeleteItem(item_id=item_id))

    @rule(ms=st.sampled_from([10, 700, 5000]))
    def time_passes(self, ms: int) -> None:
        self.both(lambda driver: driver.passes(ms))

    @rule()
    def speech_starts(self) -> None:
        self.both(lambda driver: driver.user_speaks())

    @rule(words=WORDS)
    def speech_pauses(self, words: str) -> None:
        self.both(lambda driver: driver.user_pauses(words))

    @rule(words=WORDS)
    def turn_ends(self, words: str) -> None:
        self.both(lambda driver: driver.user_turn_ends(words))

    @precondition(lambda self: self.plain.model.commits)
    @rule(which=WHICH, words=WORDS, heard=st.booleans())
    def words_are_known(self, which: int, words: str, heard: bool) -> None:
        for driver in (self.full, self.plain):
            item_id = driver.model.commits[which % len(driver.model.commits)]
            if heard:
                driver.transcript(item_id, words)
            else:
                driver.unheard(item_id)

    @precondition(lambda self: self.plain.model.keys)
    @rule(ms=MS, text=WORDS)
    def model_speaks(self, ms: float, text: str) -> None:
        self.both(lambda driver: driver.model_audio(ms, text))

    @precondition(lambda self: self.plain.model.keys)
    @rule(end=st.sampled_from(["call", "stop", "length", "fail"]))
    def model_goes_on(self, end: str) -> None:
        match end:
            case "call":
                self.both(lambda driver: driver.model_calls())
            case "fail":
                self.both(lambda driver: driver.model_fails())
            case _:
                self.both(lambda driver: driver.model_ends(end))

    @rule(
        end=st.sampled_from(ENDS),
        luck=st.integers(0, 19),
    )
    def ends(self, end: CloseRequest, luck: int) -> None:
        if luck == 0:
            self.both(lambda driver: driver.feed(end))

    # -- beside it --------------------------------------------------------------------------

    @rule(
        speak=st.booleans(),
        given=st.sampled_from(["all", "nothing", "item"]),
        tools=st.booleans(),
        n=WHICH,
    )
    def asks_beside(self, speak: bool, given: str, tools: bool, n: int) -> None:
        order = self.watchers[0].order
        references = [ItemInput(type="item_reference", id=item_id) for item_id in order]
        some = references[n % len(order) :][:1] if given == "item" and order else []
        options = ResponseOptions(
            conversation="none",
            output_modalities=("audio",) if speak else ("text",),
            input=None if given == "all" else tuple(some),
            tools=({"type": "function", "name": "f"},) if tools else None,
        )
        self.full.send(CreateResponse(event_id=BESIDE, response=options))

    @precondition(lambda self: self.turns.asked)
    @rule(which=WHICH, text=WORDS, ms=MS)
    def turn_says(self, which: int, text: str, ms: float) -> None:
        self.full.turn_says(self._turn(which), text, ms=ms)

    @precondition(lambda self: self.turns.asked)
    @rule(
        which=WHICH,
        part=st.sampled_from(
            [
                TurnChunk(tool_calls=(TurnToolCall(call_id="c", name="f", arguments="{}"),)),
                TurnChunk(finish_reason="stop"),
                TurnChunk(text="all", finish_reason="length"),
                TurnChunk(pcm=bytes(20)),
                TurnFailure("out of words"),
            ]
        ),
    )
    def turn_goes_on(self, which: int, part: TurnChunk | TurnFailure) -> None:
        self.full.turn_makes(self._turn(which), part)

    @precondition(lambda self: self.beside)
    @rule(which=WHICH, what=st.sampled_from(["cancel", "clear", "acknowledge"]))
    def stop_beside(self, which: int, what: str) -> None:
        named = self.beside[-1 - which % len(self.beside)]
        match what:
            case "cancel":
                self.full.send(CancelResponse(event_id=BESIDE, response_id=named))
            case "clear":
                self.full.send(ClearOutputAudio(event_id=BESIDE, response_id=named))
            case _:
                told = AckPlayback(event_id=BESIDE, response_id=named, played_ms=10)
                self.full.send(told)

    def _turn(self, which: int) -> str:
        """One of the newest turns, whether it still runs or not."""
        return list(self.turns.asked)[-1 - which % len(self.turns.asked)]

    # -- always -----------------------------------------------------------------------------

    def news(self) -> tuple[list[DuplexEvent], list[DuplexEvent]]:
        logs = self.full.log[self.seen[0] :], self.plain.log[self.seen[1] :]
        self.seen = len(self.full.log), len(self.plain.log)
        return logs

    @invariant()
    def the_conversation_is_the_same(self) -> None:
        full, plain = self.news()
        for watcher, news in zip(self.watchers, (full, plain), strict=True):
            watcher.watch(news)
        self.beside += [
            event.response_id
            for event in full
            if isinstance(event, ResponseCreated) and event.response.conversation_id is None
        ]
        ours, theirs = self.words
        assert [ours.of(event) for event in self.of_conversation(full)] == list(
            map(theirs.of, plain)
        )
        shown = [driver.session.public_object() for driver in (self.full, self.plain)]
        assert ours.of(shown[0]) == theirs.of(shown[1])
        under_way = [name for name in self.watchers[0].active if name in self.beside]
        assert len(under_way) <= (0 if self.full.session.closed else AT_ONCE)

    @invariant()
    def the_model_is_asked_the_same(self) -> None:
        ours, theirs = self.full.model, self.plain.model
        assert ours.prompts == theirs.prompts
        assert (ours.keys, ours.cancelled, ours.appends) == (
            theirs.keys,
            theirs.cancelled,
            theirs.appends,
        )
        assert self.full.wakes_at == self.plain.wakes_at

    def of_conversation(self, events: list[DuplexEvent]) -> list[DuplexEvent]:
        """What the client sees beside what is beside."""
        padded = (None, *events, None)
        return [
            event
            for previous, event, following in zip(padded, events, padded[2:], strict=False)
            if not (
                self.is_beside(event)
                or (isinstance(event, RateLimitsUpdated) and self.is_beside(previous))
                or (isinstance(event, ErrorEvent) and self.is_of_beside(event, following))
            )
        ]

    def is_beside(self, event: DuplexEvent | None) -> bool:
        if isinstance(event, PlaybackAcknowledged):
            return event.event.item_id.removeprefix("item_") in self.beside
        return getattr(event, "response_id", None) in self.beside

    def is_of_beside(self, event: ErrorEvent, following: DuplexEvent | None) -> bool:
        """Whether it refuses a command about what is beside, or tells why that fails."""
        if event.error.event_id == BESIDE:
            return True
        failed = {
            done.response_id
            for done in self.full.of(ResponseDone)
            if done.response.status == "failed"
        }
        is_told_of = self.is_beside(following) and getattr(following, "response_id", None) in failed
        return is_told_of and event.error.code != "output_backpressure"

    def teardown(self) -> None:
        """Each has its one ending, at the latest with its session."""
        self.both(lambda driver: driver.send(CloseSession()))
        self.the_conversation_is_the_same()
        done = [event.response_id for event in self.full.of(ResponseDone)]
        assert sorted(name for name in done if name in self.beside) == sorted(self.beside)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("config", [LISTENING, ADAPTIVE, BY_HAND, PHONE], ids=lambda config: "")
def test_what_is_beside_makes_no_difference(config: DuplexSessionConfig) -> None:
    machine = type("Machine", (TwinMachine,), {"config": config})
    run_state_machine_as_test(machine, settings=programs(desk=30, ci=50))
