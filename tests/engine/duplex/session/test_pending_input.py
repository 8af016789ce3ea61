"""What a session holds of its client's input is bounded, whatever the client does (B30)."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Sequence
from types import FunctionType, ModuleType

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.engine.duplex.session.driver import (
    BY_HAND,
    LISTENING,
    MAX_INPUT_BYTES,
    SessionDriver,
    loud,
)
from tests.engine.duplex.session.scripted_model import RATE_HZ, ScriptedModel, ScriptedPlugin

from omniduplex.audio.pcm import byte_count
from omniduplex.engine.duplex.contracts import DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.model_events import UserAudioWaits
from omniduplex.engine.duplex.session.core import INLINE_BYTES
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    Commit,
    ContentPart,
    CreateItem,
    CreateResponse,
    ErrorEvent,
    Heartbeat,
    HeartbeatAck,
    InputCleared,
    InputCommitted,
    ItemInput,
    ResponseDone,
)
from omniduplex.stages.messages import StageInput

MAX_QUEUE = 64
PIECE = loud(1000)
LARGE = loud(3000)
assert len(PIECE) < INLINE_BYTES < len(LARGE)


class Model(ScriptedModel):
    """Its audio goes to a stage; `turn` is what it keeps of the open turn."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = b""

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        self.turn += pcm
        return (Submit(0, StageInput("append", pcm=pcm)),)

    def plan_commit(self, fence: DuplexFence, item_id: str) -> Sequence[StageWork]:
        self.turn = b""
        return super().plan_commit(fence, item_id)

    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        self.turn = b""
        return super().plan_clear(fence)


class Plugin(ScriptedPlugin):
    """Makes such a model."""

    def __init__(self) -> None:
        super().__init__()
        self.model: Model = Model()


class Stage:
    """The queue of a stage, which the test takes from."""

    def __init__(self, driver: SessionDriver) -> None:
        self._driver = driver
        self._seen = 0
        self.queue: deque[bytes] = deque()

    def fill(self) -> None:
        """Queue what the session has submitted since."""
        backlog = self._driver.pending.backlog
        for effect in self._driver.effects[self._seen :]:
            if isinstance(effect, Submit):
                assert backlog.inputs < MAX_QUEUE, "a stage is overloaded by one session"
                pcm = effect.message.pcm
                backlog.given(len(pcm), MAX_QUEUE)
                self.queue.append(pcm)
        self._driver.effects.clear()

    def takes(self, count: int | None = None) -> None:
        """The worker takes so many inputs, or all."""
        self.fill()
        for _ in range(len(self.queue) if count is None else min(count, len(self.queue))):
            self._driver.pending.backlog.taken(len(self.queue.popleft()))


def held_bytes(roots: Iterable[object], *, without: Iterable[object]) -> int:
    """All audio that can be reached from here: every bytes object longer than any text."""
    seen = {id(one) for one in without}
    todo, size = list(roots), 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | ModuleType):
            continue
        seen.add(id(one))
        if isinstance(one, bytes | bytearray):
            size += len(one) if len(one) >= 1000 else 0
        elif isinstance(one, FunctionType):
            todo += one.__closure__ or ()
        else:
            todo += gc.get_referents(one)
    return size


class PendingInputMachine(RuleBasedStateMachine):
    """A client that does anything, beside a model that is slow."""

    @initialize(listens=st.booleans())
    def open(self, listens: bool) -> None:
        self.plugin = Plugin()
        self.driver = SessionDriver(LISTENING if listens else BY_HAND, plugin=self.plugin)
        self.stage = Stage(self.driver)
        self.waits = False

    @rule(ms=st.sampled_from([100, 1500, 3000, 8000, 20_000]), repeat=st.integers(1, 4))
    def append(self, ms: int, repeat: int) -> None:
        for _ in range(repeat):
            self.driver.append(ms)

    @rule(
        command=st.sampled_from(
            [ClearInput(), CancelInput(), BargeIn(), Commit(), Commit(is_speech=False)]
        )
    )
    def send(self, command: ClearInput | CancelInput | BargeIn | Commit) -> None:
        self.driver.send(command)

    @rule(ms=st.sampled_from([100, 8000, 20_000]))
    def item(self, ms: int) -> None:
        part = ContentPart(type="input_audio", audio=loud(ms))
        self.driver.send(CreateItem(item=ItemInput(content=(part,))))

    @rule(count=st.sampled_from([10, MAX_QUEUE]))
    def flood(self, count: int) -> None:
        for _ in range(count):
            self.driver.append(pcm=b"\1\0")
            self.stage.fill()

    @precondition(lambda self: self.driver.preparing)
    @rule(good=st.booleans())
    def converted(self, good: bool) -> None:
        self.driver.converted(error=None if good else "bad")

    @rule(count=st.integers(1, 5))
    def stage_takes(self, count: int) -> None:
        self.stage.takes(count)

    @rule()
    def user_turn(self) -> None:
        if self.driver.session.config.decides_turns:
            self.driver.user_turn("words")

    @invariant()
    def no_more_is_held_than_may_be(self) -> None:
        self.stage.fill()
        model = self.plugin.model
        of_session = held_bytes(
            [self.driver.session, self.driver.preparing], without=[model, self.plugin]
        )
        queued = sum(map(len, self.stage.queue))
        turn = 0 if self.driver.session.config.decides_turns else len(model.turn)
        assert of_session + max(queued, turn) <= MAX_INPUT_BYTES

    def teardown(self) -> None:
        """All is taken at last, and then there is room for all again."""
        driver = self.driver
        while driver.preparing:
            driver.converted()
            self.stage.takes()
        driver.send(ClearInput())
        self.stage.takes()
        pending = driver.pending
        assert (pending.size_bytes, pending.held_commands, pending.backlog.inputs) == (0, 0, 0)
        driver.events()
        driver.append(pcm=bytes(MAX_INPUT_BYTES))
        assert "ErrorEvent" not in driver.kinds()


TestPendingInput = PendingInputMachine.TestCase
TestPendingInput.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


@pytest.fixture(params=[LISTENING, BY_HAND], ids=["listening", "by hand"])
def session(request: pytest.FixtureRequest) -> SessionDriver:
    return SessionDriver(request.param)


def refused(driver: SessionDriver) -> list[str | None]:
    return [event.error.event_id for event in driver.of(ErrorEvent)]


def test_what_waits_behind_a_large_append_is_bounded(session: SessionDriver) -> None:
    """Sixty times the limit, while the first of it is converted."""
    for number in range(60):
        session.append(pcm=bytes(MAX_INPUT_BYTES - 2), event_id=f"{number}")

    assert refused(session) == [f"{number}" for number in range(1, 60)]
    assert session.error().code == "input_backpressure"
    session.converted()
    session.send(ClearInput())
    session.append(pcm=PIECE, event_id="again")
    assert "again" not in refused(session)


def test_what_was_dropped_counts_until_its_conversion_is_over(session: SessionDriver) -> None:
    session.append(pcm=bytes(MAX_INPUT_BYTES))
    session.send(ClearInput())
    session.append(pcm=PIECE, event_id="early")
    session.converted()
    session.append(pcm=PIECE, event_id="late")
    assert refused(session) == ["early"]


def test_audio_that_a_model_took_but_did_not_hear_counts(session: SessionDriver) -> None:
    full_ms = MAX_INPUT_BYTES / byte_count(1, RATE_HZ)
    session.model_says(UserAudioWaits(full_ms))
    session.append(pcm=PIECE, event_id="early")
    session.model_says(UserAudioWaits(0))
    session.append(pcm=PIECE, event_id="late")
    assert refused(session) == ["early"]
    assert session.error().code == "input_backpressure"


def test_what_waits_to_be_heard_counts_in_bytes_as_they_came() -> None:
    driver = SessionDriver(LISTENING)
    driver.append(pcm=b"\xff" * 800, format="g711_ulaw")
    full_ms = MAX_INPUT_BYTES / 8
    driver.model_says(UserAudioWaits(full_ms - 1000))
    driver.append(pcm=b"\xff" * 8000, format="g711_ulaw", event_id="fits")
    driver.append(pcm=b"\xff" * 8001, format="g711_ulaw", event_id="does not")
    assert refused(driver) == ["does not"]


def test_a_session_with_many_inputs_in_its_stages_is_told_to_wait(session: SessionDriver) -> None:
    """Audio first, then all else; it may still be kept, or closed."""
    backlog = session.pending.backlog
    for _ in range(MAX_QUEUE // 2):
        backlog.given(2, MAX_QUEUE)
    session.append(pcm=PIECE, event_id="audio")
    assert refused(session) == ["audio"]
    session.send(ClearInput())
    assert session.of(InputCleared)

    for _ in range(MAX_QUEUE // 4):
        backlog.given(2, MAX_QUEUE)
    session.send(ClearInput(event_id="clear"))
    session.send(Heartbeat())
    assert refused(session) == ["audio", "clear"]
    assert session.error().code == "input_backpressure"
    assert session.of(HeartbeatAck)

    while backlog.inputs:
        backlog.taken(2)
    session.append(pcm=PIECE, event_id="again")
    assert "again" not in refused(session)


def test_an_answer_can_be_stopped_however_much_waits(session: SessionDriver) -> None:
    session.says("Hi")
    session.send(CreateResponse())
    session.model_audio(200, "Well")
    for _ in range(MAX_QUEUE):
        session.pending.backlog.given(2, MAX_QUEUE)
    session.send(AckPlayback(played_ms=100))
    session.send(CancelResponse())

    assert refused(session) == []
    assert session.last(ResponseDone).response.status == "cancelled"


def test_commands_that_wait_for_a_conversion_are_bounded_too(session: SessionDriver) -> None:
    session.pending.backlog.given(0, MAX_QUEUE)
    session.append(pcm=LARGE)
    for number in range(2 * MAX_QUEUE):
        session.send(AppendAudio(audio=b"\0\0", event_id=f"{number}"))
    assert refused(session)[0] == f"{MAX_QUEUE // 2 - 1}"
    assert session.pending.held_commands == MAX_QUEUE // 2 - 1
    session.converted()
    assert session.pending.held_commands == 0


def test_a_large_append_reaches_the_model_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omniduplex.engine.duplex.session.open_turn.MAX_PIECE_BYTES", len(PIECE))
    driver = SessionDriver(BY_HAND)
    driver.append(pcm=LARGE + b"\1\0")
    driver.converted()
    assert [len(pcm) for pcm, _ in driver.model.appends] == [len(PIECE)] * 3 + [2]
    assert driver.model.heard == LARGE + b"\1\0"
    driver.commit()
    assert len(driver.of(InputCommitted)) == 1
