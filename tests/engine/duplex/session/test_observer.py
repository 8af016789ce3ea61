"""What a session leaves in the metrics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from omniduplex.engine.duplex.session.observer import (
    CLOSE_REASONS,
    OTHER_REASON,
    SessionObserver,
)
from omniduplex.protocol.duplex import (
    ENDINGS,
    AudioDelta,
    DuplexResponse,
    PlaybackCursor,
    ResponseCreated,
    ResponseDone,
    ResponseFacts,
    ResponseStatus,
    SpeechStopped,
    StatusDetails,
)
from omniduplex.telemetry.metrics import ServerMetrics
from omniduplex.telemetry.tracing import default_tracer


class Watched:
    """An observer, and the metrics it writes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.observer = SessionObserver(
            "s1", "echo", metrics=ServerMetrics(self.registry), tracer=default_tracer()
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"omniduplex_{name}", labels)


def done(status: ResponseStatus, reason: str | None = None, *, sent_ms: int = 0) -> ResponseDone:
    cursor = PlaybackCursor(generated_ms=sent_ms, sent_ms=sent_ms, played_ms=0, committed_ms=0)
    facts = ResponseFacts(type="response.done", session_id="s1", epoch=0, playback=cursor)
    details = StatusDetails(type=status, reason=reason) if reason else None
    response = DuplexResponse(id="r1", status=status, status_details=details, facts=facts)
    return ResponseDone(response_id="r1", response=response)


def test_audio_is_counted_once_in_either_direction() -> None:
    watched = Watched()
    watched.observer.heard(100.0)
    watched.observer.heard(100.0)
    watched.observer.heard(350.0)
    watched.observer.saw(done("completed", sent_ms=1200), 1.0)
    watched.observer.saw(done("completed", sent_ms=300), 2.0)

    assert watched.value("audio_in_seconds_total") == 0.35
    assert watched.value("audio_out_seconds_total") == 1.5
    assert watched.value("responses_total", status="completed") == 2


def test_only_a_user_who_talks_over_an_answer_barges_in() -> None:
    watched = Watched()
    for reason in ("turn_detected", "barge_in", "client_cancelled"):
        watched.observer.saw(done("cancelled", reason), 1.0)

    assert watched.value("barge_ins_total") == 2
    assert watched.value("responses_total", status="cancelled") == 3


def test_the_user_waits_for_the_answer_and_not_for_what_is_beside_it() -> None:
    watched = Watched()
    watched.observer.saw(SpeechStopped(item_id="i1", audio_end_ms=100), 10.0)
    for at, name, conversation in ((10.1, "beside", None), (10.2, "answer", "conv_1")):
        response = DuplexResponse(id=name, status="in_progress", conversation_id=conversation)
        watched.observer.saw(ResponseCreated(response_id=name, response=response), at)
    watched.observer.saw(AudioDelta(response_id="beside", item_id="i2", delta=b""), 10.3)
    assert watched.value("first_audio_seconds_count") == 0
    watched.observer.saw(AudioDelta(response_id="answer", item_id="i3", delta=b""), 10.75)
    assert watched.value("first_audio_seconds_count") == 1
    assert watched.value("first_audio_seconds_sum") == 0.75


@pytest.mark.parametrize("reason", sorted(CLOSE_REASONS))
def test_a_session_that_ends_is_counted_by_its_reason(reason: str) -> None:
    watched = Watched()
    watched.observer.ended(reason)
    assert watched.value("sessions_closed_total", reason=reason) == 1


def test_every_reason_that_a_session_tells_is_counted_by_its_name() -> None:
    told = {ending.reason for ending in ENDINGS if "`session." in ending.when}
    assert told - CLOSE_REASONS == {"journal_gap"}  # the connection ends, the session goes on


@given(st.text())
def test_reasons_of_others_are_counted_together(reason: str) -> None:
    watched = Watched()
    watched.observer.ended(f"x{reason}")
    assert watched.value("sessions_closed_total", reason=OTHER_REASON) == 1
