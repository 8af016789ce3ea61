"""Any program of client and model against what the contract says of every session."""

from typing import Any

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
    LISTENING,
    MAX_INPUT_BYTES,
    SessionDriver,
    loud,
    quiet,
)
from tests.engine.duplex.session.programs import ENDS, PHONE, programs
from tests.engine.duplex.session.prompt_truth import PromptTruth
from tests.engine.duplex.session.scripted_model import ClockedPlugin

from omniduplex.engine.duplex.session.inputs import (
    AnswersGivenUp,
    CloseRequest,
)
from omniduplex.protocol.duplex import (
    AckPlayback,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    CommitFacts,
    ContentPart,
    CreateItem,
    CreateResponse,
    DeleteItem,
    DuplexEvent,
    DuplexSessionConfig,
    Heartbeat,
    InputCleared,
    InputCommit,
    InputCommitted,
    ItemInput,
    ItemTruncated,
    OutputCleared,
    PlaybackAcknowledged,
    ResponseCreated,
    ResponseDone,
    ResponseOptions,
    RetrieveItem,
    SessionPatch,
    TruncateItem,
    UpdateSession,
)

LISTEN_ONLY = msgspec.structs.replace(LISTENING, overlap_policy="listen_only")
REPORTS = msgspec.structs.replace(BY_HAND, playback_commit_policy="ack_only")
ACK_ONLY = msgspec.structs.replace(LISTENING, playback_commit_policy="ack_only")
TOOLS = msgspec.structs.replace(BY_HAND, tools=({"type": "function", "name": "f"},))
AUTO = msgspec.structs.replace(BY_HAND, auto_response=True)

ALL_THE_ROOM = bytes(MAX_INPUT_BYTES)
WORDS = st.sampled_from(["Yes. ", "One two three ", "", "and a longer piece of it, "])
TURNS = st.sampled_from(["", "What?", "Tell me more"])
MS = st.sampled_from([0.0, 20.0, 200.0, 1500.0])
HINTS = st.sampled_from(
    [
        {},
        {"force_barge_in": True},
        {"force_listen": True},
        {"overlap_action": "listen"},
        {"overlap_action": "drop"},
        {"transcript": "yeah"},
    ]
)
POSITIONS = st.sampled_from([-1.0, 0.0, 130.0, 900.0, 1e9])


class SessionMachine(RuleBasedStateMachine):
    """What the client and the model may do, in any order."""

    config: DuplexSessionConfig

    @initialize()
    def open(self) -> None:
        by_itself = self.config.auto_response
        self.driver = SessionDriver(self.config, plugin=ClockedPlugin() if by_itself else None)
        self.watcher = ContractWatcher()
        self.truth = PromptTruth()
        self.watched = 0
        self.prompts = 0
        self.waits = False

    @property
    def alive(self) -> bool:
        return not self.driver.session.closed

    # -- the client -------------------------------------------------------------------------

    @rule(ms=st.sampled_from([20, 300, 900]), speech=st.booleans(), hints=HINTS)
    def append(self, ms: int, speech: bool, hints: dict[str, Any]) -> None:
        pcm = loud(ms) if speech else quiet(ms)
        self.driver.append(pcm=pcm, **hints)

    @rule()
    def append_much(self) -> None:
        self.driver.append(pcm=loud(2500))

    @precondition(lambda self: self.driver.preparing)
    @rule(good=st.booleans())
    def conversion_is_done(self, good: bool) -> None:
        self.driver.converted(error=None if good else "bad")

    @rule(answer=st.sampled_from([None, True, False]), speech=st.sampled_from([None, False]))
    def commit(self, answer: bool | None, speech: bool | None) -> None:
        self.driver.commit(response_create=answer, is_speech=speech)

    @rule(
        command=st.sampled_from(
            [
                InputCommit(),
                ClearInput(),
                CancelInput(),
                BargeIn(),
                CancelResponse(),
                CancelResponse(response_id="resp_1"),
                ClearOutputAudio(),
                ClearOutputAudio(response_id="resp_1"),
                CreateResponse(),
                CreateResponse(response=ResponseOptions(conversation="none")),
                CreateResponse(response=ResponseOptions(interruptible=False)),
                CreateResponse(response=ResponseOptions(output_modalities=("text",))),
                CreateResponse(response=ResponseOptions(input=(), conversation="none")),
                Heartbeat(),
                UpdateSession(session=SessionPatch(instructions="Rhyme.")),
                UpdateSession(session=SessionPatch(output_audio_format="g711_ulaw")),
                UpdateSession(
                    session=SessionPatch(extra_body={"playback_commit_policy": "ack_only"})
                ),
            ]
        )
    )
    def command(self, command: CreateResponse) -> None:
        self.driver.send(command)

    @rule(role=st.sampled_from(["user", "assistant", "system"]), in_front=st.booleans())
    def create_item(self, role: str, in_front: bool) -> None:
        part = ContentPart(type="text", text=f"{role} wrote")
        item = msgspec.convert({"role": role, "content": [msgspec.to_builtins(part)]}, ItemInput)
        self.driver.send(CreateItem(item=item, previous_item_id="root" if in_front else None))

    @rule(sounds=st.integers(1, 2), large=st.booleans())
    def create_spoken_item(self, sounds: int, large: bool) -> None:
        part = ContentPart(type="input_audio", audio=loud(2500 if large else 20))
        self.driver.send(CreateItem(item=ItemInput(content=(part,) * sounds)))

    @precondition(lambda self: self.watcher.order)
    @rule(data=st.data(), what=st.sampled_from(["delete", "retrieve", "truncate"]))
    def touch_item(self, data: st.DataObject, what: str) -> None:
        item_id = data.draw(st.sampled_from(self.watcher.order))
        match what:
            case "delete":
                self.driver.send(DeleteItem(item_id=item_id))
            case "retrieve":
                self.driver.send(RetrieveItem(item_id=item_id))
            case _:
                at_ms = data.draw(POSITIONS)
                self.driver.send(TruncateItem(item_id=item_id, audio_end_ms=at_ms))

    @rule(played=POSITIONS, truncate=st.booleans(), older=st.booleans())
    def acknowledge(self, played: float, truncate: bool, older: bool) -> None:
        response_id = "resp_1" if older else None
        self.driver.send(AckPlayback(played_ms=played, truncate=truncate, response_id=response_id))

    @rule(ms=st.sampled_from([10, 700, 5000, 70_000]))
    def time_passes(self, ms: int) -> None:
        self.driver.passes(ms)

    # -- the model --------------------------------------------------------------------------

    @rule()
    def speech_starts(self) -> None:
        self.driver.user_speaks()

    @rule(words=TURNS)
    def speech_pauses(self, words: str) -> None:
        self.driver.user_pauses(words)

    @rule()
    def speech_goes_on(self) -> None:
        self.driver.user_goes_on()

    @rule(words=TURNS)
    def turn_ends(self, words: str) -> None:
        self.driver.user_turn_ends(words)

    @rule()
    def turn_ends_unheard(self) -> None:
        self.driver.user_turn_unheard()

    @precondition(lambda self: self.driver.model.commits)
    @rule(data=st.data(), words=TURNS, heard=st.booleans())
    def words_are_known(self, data: st.DataObject, words: str, heard: bool) -> None:
        item_id = data.draw(st.sampled_from(self.driver.model.commits))
        if heard:
            self.driver.transcript(item_id, words)
        else:
            self.driver.unheard(item_id)

    @precondition(lambda self: self.driver.model.recognising)
    @rule(data=st.data(), words=TURNS)
    def words_of_an_item_are_known(self, data: st.DataObject, words: str) -> None:
        item_id, index, _ = data.draw(st.sampled_from(self.driver.model.recognising))
        self.driver.transcript(item_id, words, index)

    @precondition(lambda self: self.driver.model.keys)
    @rule(ms=MS, text=WORDS)
    def model_speaks(self, ms: float, text: str) -> None:
        self.driver.model_audio(ms, text)

    @precondition(lambda self: self.driver.model.keys)
    @rule(text=WORDS)
    def model_writes(self, text: str) -> None:
        self.driver.model_text(text)

    @precondition(lambda self: self.driver.model.keys)
    @rule()
    def model_calls_a_tool(self) -> None:
        self.driver.model_calls()

    @precondition(lambda self: self.driver.model.keys)
    @rule(reason=st.sampled_from(["stop", "length"]))
    def model_ends(self, reason: str) -> None:
        self.driver.model_ends(reason)

    @precondition(lambda self: self.driver.model.keys)
    @rule()
    def model_fails(self) -> None:
        self.driver.model_fails()

    @precondition(lambda self: self.driver.model.keys)
    @rule()
    def a_turn_is_said_over_what_only_plays(self) -> None:
        self.driver.answers((1500, "One two three "))
        self.driver.append(pcm=loud(900))
        self.driver.send(InputCommit())

    @precondition(lambda self: len(self.driver.model.keys) > 1)
    @rule(ms=MS, data=st.data())
    def something_stale_comes(self, ms: float, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.driver.model.keys[:-1]))
        self.driver.model_audio(ms, "stale", key=key)

    @rule(data=st.data())
    def the_client_reads_too_slowly(self, data: st.DataObject) -> None:
        """An answer may be given up: the one being made, or a whole one that was not read."""
        whole = [
            done.response_id
            for done in self.driver.of(ResponseDone)
            if done.response.status in ("completed", "incomplete")
        ]
        if not (self.alive and (whole or self.driver.open_responses)):
            return
        name = data.draw(st.sampled_from([*self.driver.open_responses, *whole]))
        if name in whole:
            self.watcher.given_up(name)
            self.waits = False
        self.driver.feed(AnswersGivenUp((name,)))

    # -- the end ----------------------------------------------------------------------------

    @rule(
        end=st.sampled_from(ENDS),
        luck=st.integers(0, 9),
    )
    def ends(self, end: CloseRequest, luck: int) -> None:
        if luck == 0:
            self.driver.feed(end)

    # -- always -----------------------------------------------------------------------------

    @invariant()
    def the_contract_is_kept(self) -> None:
        news = self.driver.log[self.watched :]
        self.watched = len(self.driver.log)
        self.watcher.watch(news)
        self.truth.watch(news)
        for event in news:
            self._see_who_waits(event)
        for prompt in self.driver.prompts[self.prompts :]:
            self.truth.check(prompt)
        self.prompts = len(self.driver.prompts)

    def _see_who_waits(self, event: DuplexEvent) -> None:
        """A turn said over an answer waits for its own until it has it, or that one was stopped."""
        match event:
            case InputCommitted(event=CommitFacts() as facts) if facts.overlap_deferred is True:
                self.waits |= facts.response_create_deferred is True
            case ResponseCreated() if event.response.conversation_id is not None:
                self.waits = False
            case ResponseDone() if event.response.conversation_id is not None:
                self.waits &= event.response.status in ("completed", "incomplete")
            case OutputCleared() | InputCleared() | ItemTruncated() | PlaybackAcknowledged():
                is_report = isinstance(event, PlaybackAcknowledged) and not event.event.truncate
                self.waits &= is_report
            case _:
                pass

    @invariant()
    def the_session_and_its_events_agree(self) -> None:
        shown = self.driver.session.public_object()
        if self.alive:
            assert self.watcher.active == self.driver.open_responses
            active = self.watcher.active
            assert shown.active_response_id == (active[0] if active else None)
        cursor = shown.playback
        assert 0 <= cursor.played_ms <= cursor.sent_ms <= cursor.generated_ms
        assert 0 <= cursor.committed_ms <= cursor.generated_ms

    @precondition(lambda self: self.alive)
    @invariant()
    def a_model_is_asked_under_the_epoch_in_force(self) -> None:
        epochs = [fence.epoch for fence in self.driver.model.fences]
        assert epochs == sorted(epochs)
        assert all(epoch <= self.driver.session.epoch for epoch in epochs)

    def teardown(self) -> None:
        """Input budgets are zero after a clear, and a session that lives can still answer."""
        driver = self.driver
        while driver.preparing and self.alive:
            driver.converted()
        if not self.alive:
            return
        if self.waits and driver.session.active_response_id is None:
            driver.passes(100_000)  # more than can be left to play
            self.the_contract_is_kept()
            assert not self.waits, "a turn that was to be answered is forgotten"
        driver.send(CancelInput())
        self._words_come()
        assert driver.open_responses == []
        driver.events()
        driver.append(pcm=ALL_THE_ROOM)
        driver.send(ClearInput())
        assert driver.kinds() == ["InputCleared"]
        driver.send(CreateResponse())
        self._words_come()
        assert len(driver.open_responses) == 1
        driver.model_audio(100, "Still here.")
        driver.model_ends()
        assert driver.open_responses == []
        self.the_contract_is_kept()

    def _words_come(self) -> None:
        for item_id in self.driver.model.commits:
            self.driver.transcript(item_id, "at last")
        for item_id, index, _ in self.driver.model.recognising:
            self.driver.transcript(item_id, "at last", index)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "config",
    [LISTENING, LISTEN_ONLY, ACK_ONLY, BY_HAND, REPORTS, TOOLS, AUTO, PHONE],
    ids=lambda config: "",
)
def test_any_program_keeps_the_contract(config: DuplexSessionConfig) -> None:
    machine = type("Machine", (SessionMachine,), {"config": config})
    run_state_machine_as_test(machine, settings=programs(desk=40, ci=340))
