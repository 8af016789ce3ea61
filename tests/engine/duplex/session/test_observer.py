"""What a session leaves in the metrics."""

from prometheus_client import CollectorRegistry

from omniduplex.engine.duplex.session.observer import SessionObserver
from omniduplex.protocol.duplex import (
    DuplexResponse,
    PlaybackCursor,
    ResponseDone,
    ResponseFacts,
    ResponseStatus,
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
