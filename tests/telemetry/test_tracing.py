from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, NoOpTracer, Span, SpanContext, Status, StatusCode

from omniduplex.telemetry.tracing import (
    cancelled,
    default_tracer,
    end_span,
    first_audio,
    start_response_span,
    start_session_span,
)


class RecordedSpan(NonRecordingSpan):
    def __init__(self, name: str, parent: Span, attributes: Mapping[str, Any]) -> None:
        super().__init__(SpanContext(trace_id=1, span_id=1, is_remote=False))
        self.name, self.parent, self.attributes = name, parent, dict(attributes)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.status: Status | None = None
        self.ended = False

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        self.events.append((name, dict(attributes)))

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        assert isinstance(status, Status)
        self.status = status

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class RecordingTracer(NoOpTracer):
    def start_span(
        self, name: str, context: Context | None = None, *args: Any, **options: Any
    ) -> Span:
        return RecordedSpan(name, trace.get_current_span(context), options["attributes"])


def test_a_response_is_a_child_of_its_session() -> None:
    tracer = RecordingTracer()

    session = start_session_span(tracer, "sess_1", "omniduplex/echo")
    response = start_response_span(tracer, session, "resp_1", epoch=3)

    assert isinstance(session, RecordedSpan)
    assert isinstance(response, RecordedSpan)
    assert session.attributes["omniduplex.session_id"] == "sess_1"
    assert response.parent is session
    assert response.attributes == {"omniduplex.response_id": "resp_1", "omniduplex.epoch": 3}


def test_what_happens_in_a_response_is_an_event_of_its_span() -> None:
    tracer = RecordingTracer()
    session = start_session_span(tracer, "sess_1", "m")
    response = start_response_span(tracer, session, "resp_1", epoch=0)

    first_audio(response, 0.25)
    cancelled(response, "barge_in")
    end_span(response)
    end_span(session, "stage died")

    assert isinstance(session, RecordedSpan)
    assert isinstance(response, RecordedSpan)
    assert response.events == [
        ("first_audio", {"latency_s": 0.25}),
        ("cancelled", {"reason": "barge_in"}),
    ]
    assert response.ended
    assert response.status is None
    assert session.status is not None
    assert (session.status.status_code, session.status.description) == (
        StatusCode.ERROR,
        "stage died",
    )


def test_without_an_sdk_nothing_is_recorded() -> None:
    session = start_session_span(default_tracer(), "sess_1", "m")
    response = start_response_span(default_tracer(), session, "resp_1", epoch=0)
    first_audio(response, 0.1)
    end_span(response)

    assert not session.is_recording()
    assert not response.is_recording()
