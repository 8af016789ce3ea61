"""Watches a session's events go by, for the metrics and the traces."""

from __future__ import annotations

from msgspec import UnsetType
from opentelemetry.trace import Span, Tracer

from omniduplex.protocol.duplex import (
    CLIENT_CLOSE,
    AudioDelta,
    DuplexEvent,
    ResponseCreated,
    ResponseDone,
    ResponseFacts,
    SpeechStopped,
)
from omniduplex.telemetry import tracing
from omniduplex.telemetry.metrics import ServerMetrics

# Why a session ends, as the metrics tell it: what callers in this process name beside is one.
CLOSE_REASONS = frozenset(
    {
        CLIENT_CLOSE,
        "disconnect",
        "disconnect_grace_expired",
        "idle_ttl_expired",
        "internal_error",
        "open_abandoned",
        "output_backpressure",
        "request_cleanup",
        "session_expired",
        "shutdown",
        "transport_error",
    }
)
OTHER_REASON = "other"


class SessionObserver:
    """Counts and traces one session; no state of the session lives here."""

    def __init__(
        self, session_id: str, model: str, *, metrics: ServerMetrics, tracer: Tracer
    ) -> None:
        self._metrics = metrics
        self._tracer = tracer
        self._span = tracing.start_session_span(tracer, session_id, model)
        self._responses: dict[str, Span] = {}
        self._answer_id: str | None = None
        """The response that is in the conversation: its sound is what the user waits for."""
        self._turn_ended_at: float | None = None
        self._heard_ms = 0.0

    def heard(self, total_ms: float) -> None:
        """The session has taken so much audio since it began."""
        self._metrics.audio_in_seconds.inc((total_ms - self._heard_ms) / 1000)
        self._heard_ms = total_ms

    def saw(self, event: DuplexEvent, now: float) -> None:
        """An event is on its way to the client; `now` in seconds."""
        match event:
            case AudioDelta(response_id=response_id) if response_id == self._answer_id:
                self._first_audio(self._responses[response_id], now)
            case SpeechStopped():
                self._turn_ended_at = now
            case ResponseCreated():
                self._response_created(event)
            case ResponseDone():
                self._response_done(event)
            case _:
                return

    def _response_created(self, event: ResponseCreated) -> None:
        facts = event.response.facts
        epoch = facts.epoch if facts else 0
        self._responses[event.response_id] = tracing.start_response_span(
            self._tracer, self._span, event.response_id, epoch
        )
        if event.response.conversation_id is not None:
            self._answer_id = event.response_id

    def _first_audio(self, answer: Span, now: float) -> None:
        if self._turn_ended_at is None:
            return
        latency_s, self._turn_ended_at = now - self._turn_ended_at, None
        self._metrics.first_audio_seconds.observe(latency_s)
        tracing.first_audio(answer, latency_s)

    def _response_done(self, event: ResponseDone) -> None:
        status = event.response.status
        self._metrics.responses.labels(status=status).inc()
        self._count_audio(event.response.facts)
        details = event.response.status_details
        reason = details.reason if details is not None and details.reason else ""
        if status == "cancelled" and reason in ("turn_detected", "barge_in"):
            self._metrics.barge_ins.inc()
        span = self._responses.pop(event.response_id, None)
        if self._answer_id == event.response_id:
            self._answer_id = None
        if span is None:
            return
        if status == "cancelled":
            tracing.cancelled(span, reason)
        tracing.end_span(span, error=reason if status == "failed" else "")

    def _count_audio(self, facts: ResponseFacts | UnsetType) -> None:
        if not isinstance(facts, UnsetType) and not isinstance(facts.playback, UnsetType):
            self._metrics.audio_out_seconds.inc(facts.playback.sent_ms / 1000)

    def overflowed(self) -> None:
        """The client reads too slowly."""
        self._metrics.output_overflows.inc()

    def ended(self, reason: str) -> None:
        """The session is over."""
        known = reason if reason in CLOSE_REASONS else OTHER_REASON
        self._metrics.sessions_closed.labels(reason=known).inc()
        for response in self._responses.values():
            tracing.end_span(response)
        tracing.end_span(self._span)
