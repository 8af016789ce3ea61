"""Every metric of the server, in one place; none has a label for the session."""

from __future__ import annotations

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from omniduplex.telemetry.log_queue import dropped_lines

# From a frame of audio (20 ms) to what nobody waits for; fine where a conversation feels it.
FIRST_AUDIO_BUCKETS_S = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)


class ServerMetrics:
    """The metrics of one server; labels take only values from closed vocabularies."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._define_sessions()
        self._define_traffic()
        self._define_health()

    def _define_sessions(self) -> None:
        registry = self._registry
        self.sessions_open = Gauge(
            "omniduplex_sessions_open", "Sessions that hold a slot", registry=registry
        )
        self.sessions_closing = Gauge(
            "omniduplex_sessions_closing",
            "Sessions that are over, and hold their slot until the stages are rid of them",
            registry=registry,
        )
        self.session_cleanup_failures = Counter(
            "omniduplex_session_cleanup_failures",
            "Attempts to clean up after a session that failed; each is made again",
            registry=registry,
        )
        self.sessions_opened = Counter(
            "omniduplex_sessions_opened", "Sessions opened", registry=registry
        )
        self.sessions_refused = Counter(
            "omniduplex_sessions_refused",
            "Sessions refused, by error code",
            ["code"],
            registry=registry,
        )
        self.sessions_closed = Counter(
            "omniduplex_sessions_closed",
            "Sessions closed, by reason",
            ["reason"],
            registry=registry,
        )
        self.responses = Counter(
            "omniduplex_responses", "Responses that ended, by status", ["status"], registry=registry
        )
        self.barge_ins = Counter(
            "omniduplex_barge_ins", "Responses that the user talked over", registry=registry
        )

    def _define_traffic(self) -> None:
        registry = self._registry
        self.commands = Counter(
            "omniduplex_commands", "Commands accepted, by type", ["type"], registry=registry
        )
        self.events = Counter(
            "omniduplex_events", "Events sent, by type", ["type"], registry=registry
        )
        self.audio_in_seconds = Counter(
            "omniduplex_audio_in_seconds", "Audio taken from clients", registry=registry
        )
        self.audio_out_seconds = Counter(
            "omniduplex_audio_out_seconds",
            "Audio given to clients, counted as each response ends",
            registry=registry,
        )
        self.first_audio_seconds = Histogram(
            "omniduplex_first_audio_seconds",
            "From the end of the user's turn to the first audio of the answer",
            buckets=FIRST_AUDIO_BUCKETS_S,
            registry=registry,
        )
        self.pending_output_bytes = Gauge(
            "omniduplex_pending_output_bytes",
            "Bytes of events that wait for their clients, as of the last look after sessions",
            registry=registry,
        )
        self.output_overflows = Counter(
            "omniduplex_output_overflows",
            "Sessions closed because their client reads too slowly",
            registry=registry,
        )

    def _define_health(self) -> None:
        self.stage_restarts = Counter(
            "omniduplex_stage_restarts",
            "Workers started again after an unexpected end, by stage",
            ["stage"],
            registry=self._registry,
        )
        Gauge(
            "omniduplex_log_lines_dropped",
            "Log lines of the server's process that nobody took",
            registry=self._registry,
        ).set_function(dropped_lines)

    def exposition(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)


METRICS = ServerMetrics(REGISTRY)
"""Those of this process: the ones that `/metrics` shows."""
