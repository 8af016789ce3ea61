"""The shell around a session: effects are done in order, and no failure leaves it half alive."""

from collections.abc import Set

import pytest
from tests.engine.duplex.session.driver import (
    BY_HAND,
    LISTENING,
    MODEL_RATE_HZ,
    kinds,
    loud,
)
from tests.engine.duplex.session.scripted_model import ScriptedModel, ScriptedPlugin
from tests.engine.duplex.session.shell import FakeClock, FakePort, HandExecutor, read

from omniduplex.audio.pcm import byte_count
from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex.model_events import (
    ModelEvent,
    ResponseAudio,
    ResponseEnded,
    UserTurnEnded,
)
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.engine_session import DuplexEngineSession
from omniduplex.engine.duplex.session.inputs import CloseRequest, StageLost, StageResult
from omniduplex.engine.duplex.session.observer import SessionObserver
from omniduplex.engine.duplex.session.runner import DuplexSessionRunner
from omniduplex.protocol.duplex import (
    AppendAudio,
    AudioDelta,
    CancelResponse,
    ClearInput,
    CloseSession,
    Commit,
    DuplexEvent,
    DuplexSessionConfig,
    ErrorEvent,
    Heartbeat,
    ResponseDone,
    SessionClosed,
    SessionExpired,
    SessionPatch,
    UpdateSession,
)
from omniduplex.stages.messages import StageOutput
from omniduplex.telemetry.logging import SessionFilter
from omniduplex.telemetry.metrics import METRICS
from omniduplex.telemetry.tracing import default_tracer

LIMITS = DuplexSessionRuntimeConfig(max_pending_output_events_per_session=12)
"""Room for the largest batch of these tests, and for one event more."""


class Shell:
    """A session in its runner."""

    def __init__(
        self,
        config: DuplexSessionConfig = LISTENING,
        *,
        model: ScriptedModel | None = None,
        refuses: Set[str] = frozenset(),
        limits: DuplexSessionRuntimeConfig = LIMITS,
    ) -> None:
        plugin = ScriptedPlugin(model=model)
        self.model = plugin.model
        self.port = FakePort()
        self.clock = FakeClock()
        self.port.refuses |= refuses
        self.executor = HandExecutor()
        self.link = DuplexSessionLink("s1", limits)
        self.ended: list[str] = []
        numbers = iter(range(1, 1000))
        core = SessionCore(
            session_id="s1",
            config=config,
            capabilities=plugin.capabilities(1),
            plugin=plugin,
            model=self.model,
            new_id=lambda prefix: f"{prefix}_{next(numbers)}",
            limits=limits,
            opened_at=0.0,
        )
        self.runner = DuplexSessionRunner(
            DuplexEngineSession(core),
            link=self.link,
            port=self.port,
            executor=self.executor,
            clock=self.clock.time,
            call_soon=lambda callback: callback(),
            call_later=self.clock.call_later,
            on_ended=self.ended.append,
            observer=SessionObserver("s1", "scripted", metrics=METRICS, tracer=default_tracer()),
        )
        self.runner.start()

    def model_says(self, *events: ModelEvent) -> None:
        self.model.says = list(events)
        self.runner.post(StageResult(0, StageOutput("any")))

    def audio(self) -> None:
        pcm = bytes(byte_count(100, MODEL_RATE_HZ))
        self.model_says(ResponseAudio(self.model.keys[-1], pcm, MODEL_RATE_HZ, "word "))

    def pad(self, room: int) -> None:
        """Leave room for so many events."""
        while self.link.output.pending_events < 12 - room:
            self.runner.post(Heartbeat())


def speaking() -> Shell:
    """An answer is under way, and all events were read."""
    shell = Shell()
    events = read(shell.link)
    shell.model_says(UserTurnEnded(100, "Hi"))
    events += read(shell.link)
    shell.audio()
    events += read(shell.link)
    assert kinds(events)[-2:] == ["AudioDelta", "TranscriptDelta"]
    return shell


class BrokenModel(ScriptedModel):
    """Fails wherever the test wants it to."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        for name in broken:
            setattr(self, name, self._fail)

    def _fail(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("a bug")


def test_work_is_done_and_events_are_queued() -> None:
    shell = Shell()
    assert shell.port.submitted == [("s1", "open")]
    assert kinds(read(shell.link)) == ["SessionCreated", "ConversationCreated", "SessionUpdated"]


def test_inputs_that_come_while_one_is_handled_come_after_it() -> None:
    shell = Shell(BY_HAND)
    read(shell.link)
    shell.port.on_submit = lambda name: (
        shell.runner.post(Heartbeat()) if name.startswith("commit") else None
    )
    shell.runner.post(AppendAudio(audio=loud(100)))
    shell.runner.post(Commit())

    assert kinds(read(shell.link))[-2:] == ["ItemDone", "HeartbeatAck"]


def test_b05_queued_audio_does_not_survive_a_cancel() -> None:
    shell = speaking()
    for _ in range(2):
        shell.audio()
    shell.runner.post(CancelResponse())
    shell.audio()

    events = read(shell.link)
    assert not any(isinstance(event, AudioDelta) for event in events)
    assert kinds(events)[:2] == ["TranscriptDelta", "TranscriptDelta"]
    assert [e.response.status for e in events if isinstance(e, ResponseDone)] == ["cancelled"]
    assert shell.model.keys[-1] in shell.port.aborted


# Readers that are too slow


@pytest.mark.parametrize("room", range(8))
def test_an_overflow_amid_an_ending_leaves_one_ending(room: int) -> None:
    """Seven events end an answer, the sixth is `response.done`."""
    shell = speaking()
    shell.pad(room)
    shell.model_says(ResponseEnded(shell.model.keys[-1]))
    events = read(shell.link)

    done = [event for event in events if isinstance(event, ResponseDone)]
    assert len(done) == 1
    overflowed = room < 7
    lost_the_ending = room < 5  # as the sixth it still finds room in the reserve
    assert shell.ended == (["output_backpressure"] if overflowed else [])
    if not overflowed:
        assert done[0].response.status == "completed"
        return
    assert isinstance(events[-1], SessionClosed)
    assert events[-1].reason == "output_backpressure"
    errors = [event for event in events if isinstance(event, ErrorEvent)]
    assert [error.error.code for error in errors] == ["output_backpressure"]
    assert done[0].response.status == ("failed" if lost_the_ending else "completed")
    assert len(done[0].response.output) == 1
    if lost_the_ending:
        assert kinds(events)[-3:] == ["ErrorEvent", "ResponseDone", "SessionClosed"]


@pytest.mark.parametrize("room", range(12))
def test_an_overflow_amid_an_opening_ends_only_what_was_announced(room: int) -> None:
    shell = Shell()
    read(shell.link)
    shell.pad(room)
    shell.model_says(UserTurnEnded(100, "Hi"))
    events = read(shell.link)

    names = kinds(events)
    assert names.count("ResponseCreated") == names.count("ResponseDone") or room >= 10
    if shell.ended:
        assert names[-1] == "SessionClosed"
        assert names.count("ErrorEvent") == 1


@pytest.mark.parametrize("room", range(9))
def test_a_lost_stage_closes_a_full_session_too(room: int) -> None:
    shell = speaking()
    shell.pad(room)
    shell.runner.post(StageLost(0, "died"))

    events = read(shell.link)
    assert isinstance(events[-1], SessionExpired)
    assert kinds(events).count("ResponseDone") == 1
    assert shell.ended == ["request_cleanup"]


def test_a_reader_that_keeps_up_loses_nothing() -> None:
    shell = speaking()
    for _ in range(100):
        shell.audio()
        assert kinds(read(shell.link)) == ["AudioDelta", "TranscriptDelta"]
    assert shell.ended == []


# Readers that are too slow, where that costs them answers alone


def forgiving(max_events: int) -> Shell:
    """A session of which all events were read."""
    limits = DuplexSessionRuntimeConfig(
        max_pending_output_events_per_session=max_events, output_overflow="fail_response"
    )
    shell = Shell(limits=limits)
    read(shell.link)
    return shell


def answer(shell: Shell, words: str, pieces: int = 10) -> None:
    shell.model_says(UserTurnEnded(100, words))
    for _ in range(pieces):
        shell.audio()
    shell.model_says(ResponseEnded(shell.model.keys[-1]))


# What has to be told of an answer even if nobody hears it, and of what is no answer.
ESSENTIAL = (
    "ItemAdded",
    "ItemDone",
    "InputCommitted",
    "ResponseCreated",
    "OutputItemAdded",
    "OutputItemDone",
    "ResponseDone",
    "RateLimitsUpdated",
    "HeartbeatAck",
)


def essential(events: list[DuplexEvent]) -> list[str]:
    return [name for name in kinds(events) if name in ESSENTIAL]


def statuses(events: list[DuplexEvent]) -> list[str]:
    return [event.response.status for event in events if isinstance(event, ResponseDone)]


@pytest.mark.parametrize("max_events", range(45, 70))
def test_a_slow_reader_misses_pieces_of_answers_and_nothing_else(max_events: int) -> None:
    """Two turns and their answers are some 40 events and 40 pieces."""
    told = []
    for shell in (forgiving(1000), forgiving(max_events)):
        answer(shell, "Hi")
        shell.runner.post(Heartbeat())
        answer(shell, "Again")
        told.append(read(shell.link))
    whole, missed = told

    assert shell.ended == []
    assert essential(missed) == essential(whole)
    assert statuses(missed)[-1] == "failed"
    assert kinds(missed).count("ErrorEvent") == statuses(missed).count("failed")


def test_an_unread_answer_makes_room_when_none_is_under_way() -> None:
    shell = forgiving(60)
    answer(shell, "Hi")
    for _ in range(35):
        shell.runner.post(Heartbeat())
    events = read(shell.link)

    assert shell.ended == []
    assert statuses(events) == ["failed"]
    assert kinds(events).count("HeartbeatAck") == 35
    assert kinds(events).count("ErrorEvent") == 1
    assert not any(isinstance(event, AudioDelta) for event in events)
    answer(shell, "Again")
    assert [message.text for message in shell.model.prompts[-1].messages] == ["Hi", "Again"]
    assert statuses(read(shell.link)) == ["completed"]


def test_an_answer_under_way_is_stopped_when_nobody_reads_it() -> None:
    shell = forgiving(40)
    shell.model_says(UserTurnEnded(100, "Hi"))
    for _ in range(40):
        shell.audio()
    events = read(shell.link)

    assert shell.ended == []
    assert statuses(events) == ["failed"]
    assert shell.model.keys[-1] in shell.port.aborted
    answer(shell, "Again")
    assert statuses(read(shell.link)) == ["completed"]


def test_what_is_no_answer_and_does_not_fit_ends_the_session_all_the_same() -> None:
    shell = forgiving(40)
    answer(shell, "Hi", pieces=2)
    for _ in range(40):
        shell.runner.post(Heartbeat())
    events = read(shell.link)

    assert shell.ended == ["output_backpressure"]
    assert kinds(events)[-2:] == ["ErrorEvent", "SessionClosed"]
    assert statuses(events) == ["failed"]


# Failures


def test_a_bug_ends_its_session_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(SessionFilter())
    broken, other = Shell(model=BrokenModel("project")), Shell()
    broken.runner.post(StageResult(0, StageOutput("any")))
    events = read(broken.link)
    assert isinstance(events[-1], SessionClosed)
    assert events[-1].reason == "internal_error"
    assert broken.ended == ["internal_error"]
    assert "a bug" in caplog.text
    assert [vars(record)["session_id"] for record in caplog.records] == ["s1"]

    read(other.link)
    other.runner.post(Heartbeat())
    assert kinds(read(other.link)) == ["HeartbeatAck"]


@pytest.mark.parametrize("end", [CloseSession(), CloseRequest(reason="shutdown")])
def test_a_session_that_cannot_even_close_lets_its_client_go(
    end: CloseSession | CloseRequest,
) -> None:
    shell = Shell(model=BrokenModel("plan_close"))
    shell.runner.post(end)
    events = read(shell.link)
    assert isinstance(events[-1], SessionClosed)
    assert "ErrorEvent" in kinds(events)
    assert shell.ended == ["internal_error"]


def test_a_bug_at_an_event_is_an_error_that_names_it() -> None:
    shell = Shell(BY_HAND, model=BrokenModel("plan_update"))
    read(shell.link)
    shell.runner.post(UpdateSession(session=SessionPatch(instructions="x"), event_id="e1"))
    error, closed = read(shell.link)
    assert isinstance(error, ErrorEvent)
    assert (error.error.code, error.error.event_id) == ("internal_error", "e1")
    assert isinstance(closed, SessionClosed)


def test_a_stage_that_refuses_work_is_a_lost_stage() -> None:
    shell = Shell(BY_HAND)
    read(shell.link)
    shell.port.refuses = {"append"}
    shell.runner.post(AppendAudio(audio=loud(100)))

    assert kinds(read(shell.link)) == ["ErrorEvent", "SessionExpired"]
    assert shell.ended == ["request_cleanup"]


def test_a_stage_that_is_not_there_at_the_open_ends_the_session() -> None:
    shell = Shell(refuses={"open"})
    assert kinds(read(shell.link))[-2:] == ["ErrorEvent", "SessionExpired"]
    assert shell.ended == ["request_cleanup"]


# Conversions


def test_a_large_append_goes_round_by_the_executor() -> None:
    shell = Shell(BY_HAND)
    read(shell.link)
    pcm = loud(3000)
    shell.runner.post(AppendAudio(audio=pcm))
    shell.runner.post(Commit())
    assert read(shell.link) == []
    shell.executor.run()

    assert shell.model.heard == pcm
    assert kinds(read(shell.link))[-1] == "ItemDone"


def test_audio_that_cannot_be_converted_is_refused() -> None:
    shell = Shell(BY_HAND)
    read(shell.link)
    nan = b"\x00\x00\xc0\x7f" * 30_000
    shell.runner.post(AppendAudio(audio=nan, format="pcm_f32le", event_id="e1"))
    shell.executor.run()

    (refusal,) = read(shell.link)
    assert isinstance(refusal, ErrorEvent)
    assert (refusal.error.code, refusal.error.event_id) == ("bad_audio", "e1")


def test_a_bug_in_a_conversion_ends_the_session() -> None:
    shell = Shell(BY_HAND)
    read(shell.link)
    shell.runner.post(AppendAudio(audio=loud(3000)))
    future, _ = shell.executor.waiting.pop()
    future.set_exception(RuntimeError("a bug"))

    assert kinds(read(shell.link)) == ["ErrorEvent", "SessionClosed"]
    assert shell.ended == ["internal_error"]


def test_a_conversion_that_was_dropped_changes_nothing() -> None:
    shell = Shell(BY_HAND)
    read(shell.link)
    shell.runner.post(AppendAudio(audio=loud(3000)))
    shell.runner.post(ClearInput())
    shell.runner.post(AppendAudio(audio=loud(3000)))
    shell.executor.waiting[1][0].cancel()
    shell.executor.run()

    assert shell.model.heard == b""
    assert kinds(read(shell.link)) == ["InputCleared"]
    assert shell.ended == []


def test_the_end_is_told_once() -> None:
    shell = speaking()
    shell.runner.post(CloseSession(reason="bye"))
    shell.runner.post(CloseSession(reason="again"))
    shell.audio()

    assert shell.ended == ["client_close"]
    assert kinds(read(shell.link)) == ["SessionClosed"]


# Timers


def answered(shell: Shell, words: str = "Hi") -> Shell:
    """An answer of 100 ms is whole, and all events were read."""
    shell.model_says(UserTurnEnded(100, words))
    read(shell.link)
    shell.audio()
    shell.model_says(ResponseEnded(shell.model.keys[-1]))
    read(shell.link)
    return shell


def opened() -> Shell:
    shell = Shell()
    read(shell.link)
    return shell


def test_the_timer_that_a_session_sets_goes_off() -> None:
    shell = answered(opened())
    (timer,) = shell.clock.waiting
    assert timer.at == pytest.approx(0.1)

    shell.clock.passes(0.2)
    assert kinds(read(shell.link)) == ["OutputStopped"]
    assert shell.clock.waiting == []


def test_a_timer_that_is_set_anew_goes_off_once() -> None:
    shell = answered(answered(opened()), "And?")
    assert len(shell.clock.waiting) == 1
    shell.clock.passes(10)
    assert kinds(read(shell.link)) == ["OutputStopped"]


def test_a_session_that_ended_is_not_woken() -> None:
    shell = answered(opened())
    shell.runner.post(CloseSession())
    assert shell.clock.waiting == []
    shell.clock.passes(10)
    assert isinstance(read(shell.link)[-1], SessionClosed)
