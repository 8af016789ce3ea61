"""The shell around a session: effects are done in order, and no failure leaves it half alive."""

import pytest
from tests.engine.duplex.session.driver import BY_HAND, kinds, loud
from tests.engine.duplex.session.scripted_model import ScriptedModel
from tests.engine.duplex.session.shell import read
from tests.engine.duplex.session.shelled import Shell, speaking

from omniduplex.engine.duplex.model_events import ResponseEnded, UserTurnEnded
from omniduplex.engine.duplex.session.inputs import CloseRequest, StageResult
from omniduplex.protocol.duplex import (
    AppendAudio,
    AudioDelta,
    CancelResponse,
    ClearInput,
    CloseSession,
    Commit,
    ErrorEvent,
    Heartbeat,
    ResponseDone,
    SessionClosed,
    SessionPatch,
    UpdateSession,
)
from omniduplex.stages.messages import StageOutput
from omniduplex.telemetry.logging import SessionFilter


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


@pytest.mark.parametrize("free", [True, False])
def test_the_end_tells_whether_the_slot_is_free(free: bool) -> None:
    shell = Shell()
    shell.slot_is_free = free
    shell.runner.post(CloseSession())
    closed = read(shell.link)[-1]
    assert isinstance(closed, SessionClosed)
    assert closed.slot_released is free


def test_work_that_cannot_be_ended_changes_no_word_of_the_end() -> None:
    shell = speaking()
    shell.port.breaks_at = {"abort"}
    shell.runner.post(CloseSession())
    (closed,) = read(shell.link)
    assert isinstance(closed, SessionClosed)
    assert closed.reason == "client_close"
    assert shell.ended == ["client_close"]


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
