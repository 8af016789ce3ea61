"""Spans of sessions and responses; without an OpenTelemetry SDK they cost and do nothing.

There is never a span per audio frame: what happens inside a response is an event of its span.
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue

TRACER_NAME = "omniduplex"


def default_tracer() -> Tracer:
    """The tracer of the provider that the process has set, if any."""
    return trace.get_tracer(TRACER_NAME)


def start_session_span(tracer: Tracer, session_id: str, model: str) -> Span:
    """The span of one session; whoever holds it ends it with `end_span`."""
    attributes = {"omniduplex.session_id": session_id, "omniduplex.model": model}
    return tracer.start_span("duplex.session", attributes=attributes)


def start_response_span(tracer: Tracer, session: Span, response_id: str, epoch: int) -> Span:
    """The span of one response, a child of its session's."""
    attributes: dict[str, AttributeValue] = {
        "omniduplex.response_id": response_id,
        "omniduplex.epoch": epoch,
    }
    parent = trace.set_span_in_context(session)
    return tracer.start_span("duplex.response", context=parent, attributes=attributes)


def first_audio(response: Span, latency_s: float) -> None:
    """The first audio of a response has been given out, `latency_s` after the user's turn ended."""
    response.add_event("first_audio", {"latency_s": latency_s})


def cancelled(response: Span, reason: str) -> None:
    """The response was cut short."""
    response.add_event("cancelled", {"reason": reason})


def end_span(span: Span, error: str = "") -> None:
    """End a span; a non-empty `error` marks it as failed."""
    if error:
        span.set_status(Status(StatusCode.ERROR, error))
    span.end()
