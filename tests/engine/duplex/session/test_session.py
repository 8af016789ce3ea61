"""Commands about the session itself, and refusals: they name their event and change nothing."""

import msgspec
import pytest
from msgspec import UNSET
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver, kinds
from tests.engine.duplex.session.scripted_model import REFUSED_VOICE, ScriptedPlugin

from omniduplex.engine.duplex.model_events import (
    Listen,
    ResponseAudio,
    ResponseEnded,
    ResponseMetrics,
    Speak,
)
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    Commit,
    CreateResponse,
    Dialect,
    DuplexCommand,
    Heartbeat,
    HeartbeatAck,
    InputCommit,
    ListenDecision,
    ResponseCreated,
    ResponseDone,
    ResponseRequestMetrics,
    SessionPatch,
    SessionUpdated,
    SignalTurn,
    TurnDetectionPatch,
    TurnEvent,
    UpdateSession,
    Usage,
)


def update(driver: SessionDriver, patch: SessionPatch) -> None:
    driver.send(UpdateSession(session=patch, event_id="e1"))


def test_a_session_opens_with_its_events_after_its_first_work(driver: SessionDriver) -> None:
    assert kinds(driver.log) == ["SessionCreated", "ConversationCreated", "SessionUpdated"]
    assert [type(effect).__name__ for effect in driver.effects] == ["Submit", *["Emit"] * 3]


# session.update


def test_b31_a_partial_update_keeps_the_rest(driver: SessionDriver) -> None:
    update(driver, SessionPatch(turn_detection=TurnDetectionPatch(threshold=0.8)))
    detection = driver.last(SessionUpdated).session.turn_detection
    assert detection
    assert (detection["type"], detection["threshold"]) == ("server_vad", 0.8)
    assert detection["silence_duration_ms"] == 500
    assert driver.model.updates[-1].turn_detection

    update(driver, SessionPatch(turn_detection=None))
    assert driver.last(SessionUpdated).session.turn_detection is None


@pytest.mark.parametrize(
    ("patch", "code", "param"),
    [
        (
            SessionPatch(turn_detection=TurnDetectionPatch(threshold=9), instructions="x"),
            "unsupported_turn_detection",
            None,
        ),
        (SessionPatch(voice=REFUSED_VOICE, instructions="x"), "bad_event", "session.voice"),
        (SessionPatch(model="other"), "model_update_unsupported", "session.model"),
        (
            SessionPatch(ref_audio="data:audio/wav;base64,AAAA"),
            "ref_audio_update_unsupported",
            "session.ref_audio",
        ),
        (
            SessionPatch(input_audio_format="mp3", instructions="x"),
            "unsupported_audio_format",
            "session.input_audio_format",
        ),
    ],
)
def test_b31_a_rejected_update_changes_nothing(
    driver: SessionDriver, patch: SessionPatch, code: str, param: str | None
) -> None:
    before = driver.session.public_object()
    update(driver, patch)

    assert driver.kinds() == ["ErrorEvent"]
    assert (driver.error().code, driver.error().event_id) == (code, "e1")
    if param:
        assert driver.error().param == param
    assert driver.session.public_object() == before
    assert driver.model.updates == []


def test_stock_clients_may_repeat_a_models_name(open_session: OpenSession) -> None:
    driver = open_session(msgspec.structs.replace(LISTENING, dialect=Dialect.OPENAI))
    update(driver, SessionPatch(model="gpt-realtime", instructions="Rhyme."))
    assert driver.kinds() == ["SessionUpdated"]
    assert driver.session.config.model == "scripted"


def test_the_voice_is_fixed_once_it_was_heard(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    by_hand.model_text("written")
    by_hand.model_ends()
    update(by_hand, SessionPatch(voice="ann"))
    assert by_hand.kinds()[-1] == "SessionUpdated"

    by_hand.send(CreateResponse())
    by_hand.answers((100, "spoken"))
    update(by_hand, SessionPatch(voice="bob"))
    assert by_hand.error().code == "voice_update_after_audio_unsupported"
    update(by_hand, SessionPatch(voice="ann", instructions="same voice"))
    assert by_hand.kinds()[-1] == "SessionUpdated"


def test_the_name_that_a_stock_client_is_shown_is_that_of_the_voice_it_heard(
    open_session: OpenSession,
) -> None:
    driver = open_session(msgspec.structs.replace(BY_HAND, dialect=Dialect.OPENAI))
    driver.says("Hi")
    driver.send(CreateResponse())
    driver.answers((100, "spoken"))
    update(driver, SessionPatch(voice=driver.session.config.shown_voice, instructions="Rhyme."))
    assert driver.kinds()[-1] == "SessionUpdated"
    assert driver.session.config.voice is None


def test_an_update_reaches_the_model_and_the_next_prompt(by_hand: SessionDriver) -> None:
    update(by_hand, SessionPatch(instructions="Rhyme."))
    assert [config.instructions for config in by_hand.model.updates] == ["Rhyme."]
    by_hand.send(CreateResponse())
    assert by_hand.prompts[-1].instructions == "Rhyme."


# Small commands


def test_a_heartbeat_is_answered(driver: SessionDriver) -> None:
    driver.send(Heartbeat())
    assert driver.events() == [HeartbeatAck(session_id="s1")]


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("user_started", "user_speaking"),
        ("user_committed", "user_committed"),
        ("assistant_started", "assistant_generating"),
        ("assistant_done", "idle"),
    ],
)
def test_turn_signals_set_the_state(driver: SessionDriver, name: str, state: str) -> None:
    driver.send(SignalTurn(event=name))
    event = driver.last(TurnEvent)
    assert (event.event, event.turn_state, event.epoch) == (name, state, 0)
    assert driver.session.public_object().turn_state == state


def test_the_turn_state_follows_the_conversation(driver: SessionDriver) -> None:
    def state() -> str:
        return driver.session.public_object().turn_state

    driver.user_speaks()
    assert state() == "user_speaking"
    driver.user_turn_ends("Hi")
    assert state() == "assistant_generating"
    driver.model_audio(100, "Hello")
    assert state() == "assistant_playing"
    driver.model_ends()
    assert state() == "idle"


def test_the_session_object_tells_of_the_answer_under_way(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(100, "Hello")
    update(driver, SessionPatch(instructions="x"))
    shown = driver.last(SessionUpdated).session
    assert (shown.active_response_id, shown.active_request_id) == ("resp_1", "answer_1")
    assert (shown.active_response_turn_id, shown.turn_id) == (1, 1)
    assert shown.playback.generated_ms == 100


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (SignalTurn(event="wave"), "bad_event"),
        (SignalTurn(event="response.cancel"), "response_not_active"),
        (AppendText(text="Hi"), "native_text_append_unsupported"),
        (AppendAudio(audio=b"", video_frames=("AAAA",)), "invalid_input_modality"),
        (AppendAudio(audio=bytes(960), duration_ms=-1), "bad_event"),
        (AppendAudio(audio=bytes(960), duration_ms=1e308), "bad_event"),
        (AppendAudio(audio=b"\0\0", format="mp3"), "unsupported_audio_format"),
        (AppendAudio(audio=b"\0\0", sample_rate_hz=3), "bad_event"),
    ],
)
def test_refusals_name_their_event(
    driver: SessionDriver, command: DuplexCommand, code: str
) -> None:
    driver.send(msgspec.structs.replace(command, event_id="e1"))
    assert driver.kinds() == ["ErrorEvent"]
    assert (driver.error().code, driver.error().event_id) == (code, "e1")

    driver.user_turn("Still there?")
    driver.answers((100, "Yes."))
    assert driver.last(ResponseDone).response.status == "completed"


def test_barge_in_is_refused_by_models_that_cannot() -> None:
    plugin = ScriptedPlugin()
    plugin.can_barge_in = False
    driver = SessionDriver(plugin=plugin)
    driver.user_turn("Hi")
    driver.send(BargeIn(event_id="e1"))
    assert (driver.error().code, driver.error().event_id) == ("barge_in_unsupported", "e1")
    assert driver.open_responses == ["resp_1"]
    assert driver.session.epoch == 0


@pytest.mark.parametrize(
    "command",
    [
        Commit(event_id="e1"),
        InputCommit(event_id="e1"),
        SignalTurn(event="user_started", event_id="e1"),
        AckPlayback(played_ms=100, event_id="e1"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_a_model_does_not_offer_is_refused_and_changes_nothing(command: DuplexCommand) -> None:
    plugin = ScriptedPlugin()
    plugin.takes_hints = False
    driver = SessionDriver(BY_HAND, plugin=plugin)
    driver.append(ms=200)
    before = driver.session.public_object()
    driver.send(command)
    assert (driver.error().code, driver.error().event_id) == ("unsupported", "e1")
    assert driver.session.public_object() == before


def test_a_signal_that_stands_for_a_command_is_that_command() -> None:
    plugin = ScriptedPlugin()
    plugin.takes_hints = False
    driver = SessionDriver(plugin=plugin)
    driver.user_turn("Hi")
    driver.send(SignalTurn(event="response.cancel"))
    assert driver.last(ResponseDone).response.status == "cancelled"


# Models that speak by themselves


@pytest.fixture
def native(open_session: OpenSession) -> SessionDriver:
    """A session whose model takes no requests."""
    driver = open_session(msgspec.structs.replace(BY_HAND, auto_response=True))
    driver.model.answers_when_asked = False
    return driver


def speaks(driver: SessionDriver, key: str, text: str = "Hello.") -> None:
    audio = ResponseAudio(key, bytes(4800), 24000, text)
    driver.model_says(Speak(key), audio)


def test_a_model_may_speak_by_itself(native: SessionDriver) -> None:
    speaks(native, "own")
    native.model_says(ResponseEnded("own"))
    assert native.kinds()[0] == "ResponseCreated"
    assert native.last(ResponseDone).response.status == "completed"


def test_its_next_turn_ends_the_one_before(native: SessionDriver) -> None:
    speaks(native, "one")
    speaks(native, "two")
    assert [done.response.status for done in native.of(ResponseDone)] == ["completed"]
    assert native.open_responses == ["resp_2"]


def test_it_is_asked_for_nothing_when_a_turn_ends(native: SessionDriver) -> None:
    native.user_turn("Hi")
    assert native.of(ResponseCreated) == []
    speaks(native, "own")
    assert native.open_responses == ["resp_1"]


def test_it_refuses_requests(native: SessionDriver) -> None:
    native.send(CreateResponse(event_id="e1"))
    assert native.kinds() == ["ErrorEvent"]
    assert (native.error().code, native.error().event_id) == ("unsupported", "e1")
    assert native.session.public_object().playback.generated_ms == 0


def test_an_answer_that_waited_for_words_fails_when_it_refuses(native: SessionDriver) -> None:
    native.append(300)
    native.send(InputCommit())
    native.transcript("item_1", "Hi")
    assert native.last(ResponseDone).response.status == "failed"
    assert native.error().code == "unsupported"
    assert native.open_responses == []


def test_a_decision_to_listen_is_shown(driver: SessionDriver) -> None:
    driver.model_says(Listen())
    facts = driver.last(ListenDecision).response.metadata
    assert (facts.reason, facts.model_listen) == ("model_listen", True)


# What was counted


def test_usage_and_measurements_are_in_the_ending(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_says(ResponseMetrics("answer_1", 0, {"ttft_s": 0.1}))
    driver.model_says(ResponseMetrics("answer_1", 0, {"tokens": 3.0}))
    driver.model_says(ResponseMetrics("answer_1", 1, {"ttfa_s": 0.2}))
    usage = Usage(total_tokens=5, input_tokens=2, output_tokens=3)
    driver.model_says(ResponseEnded("answer_1", "stop", usage))

    done = driver.last(ResponseDone).response
    assert done.usage == usage
    assert done.facts
    assert done.facts.omniduplex
    assert done.facts.omniduplex.stage_metrics == {
        "0": {"ttft_s": 0.1, "tokens": 3.0},
        "1": {"ttfa_s": 0.2},
    }


def test_how_soon_an_answer_came_is_in_its_ending(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.clock += 0.25
    driver.model_says(ResponseAudio("answer_1", bytes(4800), 24000))
    driver.clock += 0.5
    driver.model_says(ResponseAudio("answer_1", bytes(2400), 24000, "Hello."))
    driver.model_says(ResponseEnded("answer_1", "stop"))

    facts = driver.last(ResponseDone).response.facts
    assert facts
    assert facts.omniduplex
    assert facts.omniduplex.response_request_metrics == ResponseRequestMetrics(
        measurement_origin={"ttft": "response.created", "ttfp": "response.created"},
        ttft_ms=750,
        ttfp_ms=250,
        audio_generation_ms=750,
        audio_duration_ms=150,
    )


def test_an_answer_that_said_nothing_has_no_latencies(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_says(ResponseEnded("answer_1", "stop"))

    facts = driver.last(ResponseDone).response.facts
    assert facts
    assert facts.omniduplex is UNSET


def test_the_initial_user_text_is_the_first_turn(open_session: OpenSession) -> None:
    driver = open_session(
        msgspec.structs.replace(LISTENING, initial_user_text="I am calling about my order.")
    )
    driver.user_turn("Where is it?")
    assert driver.said == [("user", "I am calling about my order."), ("user", "Where is it?")]
