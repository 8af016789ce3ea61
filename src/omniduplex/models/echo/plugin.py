"""The plugin of the echo model: what it can do, and a state for each session."""

from __future__ import annotations

from omniduplex.config.options import read_options
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex.plugin import DuplexModelPlugin
from omniduplex.models.echo.messages import INPUT_RATE_HZ, UNIT_MS, EchoOptions
from omniduplex.models.echo.session_state import EchoSessionState
from omniduplex.protocol.duplex import DuplexCapabilities, DuplexError, DuplexSessionConfig


class EchoDuplexPlugin(DuplexModelPlugin):
    """A native duplex model without weights, for tests, benchmarks and as an example."""

    input_rate_hz = INPUT_RATE_HZ
    recognises_items = True

    def __init__(self, pipeline: PipelineConfig) -> None:
        super().__init__(pipeline)
        self._stage = pipeline.stages[0]
        self._options = read_options(self._stage, EchoOptions)

    def capabilities(self, max_sessions: int) -> DuplexCapabilities:
        """A model that starts by itself takes no requests for an answer, hence no text turns."""
        answers_requests = not self._options.self_start
        return DuplexCapabilities(
            implementation_level="model_native_duplex",
            supports_model_native_turn_policy=True,
            supports_client_commit=answers_requests,
            supports_input_append=True,
            supports_model_internal_state=True,
            supports_independent_io_streams=True,
            supports_multi_session=max_sessions > 1,
            supports_multi_session_same_replica=max_sessions > 1,
            supports_session_lease=True,
            supports_session_resume=True,
            supports_audio_truncate=True,
            supports_text_only_turn=answers_requests,
            chunk_period_ms=UNIT_MS,
        )

    def validate_config(self, config: DuplexSessionConfig) -> None:
        """Any voice will do; a voice to copy will not, nor silence from a self-starter."""
        if config.ref_audio is not None:
            raise DuplexError(
                "invalid_session_config", "echo has no voice to copy", param="ref_audio"
            )
        detection = config.turn_detection
        if self._options.self_start and detection is not None and not detection.create_response:
            raise DuplexError(
                "unsupported_turn_detection",
                "this deployment of echo answers every turn by itself",
                param="turn_detection.create_response",
            )

    def create_session_state(
        self, session_id: str, config: DuplexSessionConfig
    ) -> EchoSessionState:
        """A fresh state on the one stage of the pipeline."""
        return EchoSessionState(self._stage.stage_id, self._options)
