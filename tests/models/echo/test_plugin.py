from __future__ import annotations

import msgspec
import pytest
from tests.models.echo.driver import ALL_AT_ONCE, CONFIG, EchoDriver, echo_pipeline, prompt, user

from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.duplex.contracts import Abort, DuplexFence, Submit
from omniduplex.engine.duplex.model_events import ResponseEnded, ResponseFailed
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.plugin import EchoDuplexPlugin
from omniduplex.models.echo.session_state import EchoSessionState
from omniduplex.protocol.duplex import DuplexError, TurnDetection
from omniduplex.stages.messages import StageOutput

SELF_START = EchoOptions(self_start=True)
FENCE = DuplexFence("s1", 0, 0)
NEXT_EPOCH = DuplexFence("s1", 1, 0)


def open_state(options: EchoOptions = ALL_AT_ONCE) -> tuple[EchoSessionState, str]:
    """A state and the id of its listening request."""
    state = EchoDuplexPlugin(echo_pipeline(options)).create_session_state("s1", CONFIG)
    (work,) = state.plan_open(FENCE, CONFIG)
    assert isinstance(work, Submit)
    return state, work.message.request_id


def ask(state: EchoSessionState, key: str) -> str:
    """The request of an answer asked for."""
    work = state.plan_response(FENCE, key, prompt(user("hello")))
    assert work is not None
    (submit,) = work
    assert isinstance(submit, Submit)
    return submit.message.request_id


def test_capabilities_of_a_native_model_that_takes_requests() -> None:
    can = EchoDuplexPlugin(echo_pipeline()).capabilities(max_sessions=8)

    assert can.implementation_level == "model_native_duplex"
    assert can.supports_model_native_turn_policy
    assert can.supports_input_append
    assert can.supports_barge_in
    assert can.supports_client_commit
    assert can.supports_playback_ack
    assert can.supports_audio_truncate
    assert can.supports_text_only_turn
    assert can.supports_multi_session
    assert can.chunk_period_ms == 80
    assert can.supports_session_resume


def test_one_session_is_no_multi_session() -> None:
    can = EchoDuplexPlugin(echo_pipeline()).capabilities(max_sessions=1)

    assert not can.supports_multi_session
    assert not can.supports_multi_session_same_replica


def test_a_self_starter_offers_no_requests_for_an_answer() -> None:
    can = EchoDuplexPlugin(echo_pipeline(SELF_START)).capabilities(max_sessions=8)

    assert not can.supports_client_commit
    assert not can.supports_text_only_turn


def test_a_voice_to_copy_is_refused() -> None:
    config = msgspec.structs.replace(CONFIG, ref_audio="data:audio/wav;base64,")
    with pytest.raises(DuplexError) as refused:
        EchoDuplexPlugin(echo_pipeline()).validate_config(config)

    assert (refused.value.code, refused.value.param) == ("invalid_session_config", "ref_audio")


def test_only_a_model_that_takes_requests_can_leave_turns_unanswered() -> None:
    config = msgspec.structs.replace(CONFIG, turn_detection=TurnDetection(create_response=False))
    EchoDuplexPlugin(echo_pipeline()).validate_config(config)
    with pytest.raises(DuplexError) as refused:
        EchoDuplexPlugin(echo_pipeline(SELF_START)).validate_config(config)

    assert refused.value.code == "unsupported_turn_detection"
    assert refused.value.param == "turn_detection.create_response"


def test_a_misspelt_option_is_refused_at_start() -> None:
    stage = StageConfig(stage_id=0, name="echo", model_class="x:Y", options={"pacing": True})
    pipeline = PipelineConfig(name="echo", model="omniduplex/echo", stages=(stage,))
    with pytest.raises(ConfigError, match="pacing"):
        EchoDuplexPlugin(pipeline)


def test_a_self_starter_plans_no_answer() -> None:
    state, _ = open_state(SELF_START)

    assert state.plan_response(FENCE, "r1", prompt(user("hello"))) is None


def test_each_answer_has_a_request_of_its_own() -> None:
    state, listening = open_state()

    assert len({listening, ask(state, "r1"), ask(state, "r2")}) == 3


def test_a_cancel_aborts_the_answer_alone_and_only_once() -> None:
    state, _ = open_state()
    request_id = ask(state, "r1")

    assert state.plan_cancel(NEXT_EPOCH, "r1") == (Abort((request_id,)),)
    assert state.plan_cancel(NEXT_EPOCH, "r1") == ()


def test_an_answer_that_ended_leaves_nothing_to_cancel() -> None:
    echo = EchoDriver()
    echo.respond("r1", prompt(user("hello")))

    assert echo.of(ResponseEnded)
    assert echo.state.plan_cancel(NEXT_EPOCH, "r1") == ()


def test_the_listening_request_outlives_epochs() -> None:
    state, listening = open_state()
    (work,) = state.plan_append(NEXT_EPOCH, b"\0\0")

    assert isinstance(work, Submit)
    assert (work.message.request_id, work.message.epoch) == (listening, 1)


def test_a_close_aborts_everything_that_runs() -> None:
    state, listening = open_state()
    first, second = ask(state, "r1"), ask(state, "r2")
    state.plan_cancel(NEXT_EPOCH, "r1")

    assert first not in (listening, second)
    assert state.plan_close() == (Abort((listening, second)),)


def test_a_request_that_failed_fails_its_answer() -> None:
    state, _ = open_state()
    request_id = ask(state, "r1")
    broken = StageOutput(request_id, error="worker lost it")

    assert state.project(0, broken) == [ResponseFailed("r1", "worker lost it")]
    assert state.project(0, broken) == []
