"""The plugin that serves the embedded model: what it can do, what it refuses."""

from __future__ import annotations

from typing import ClassVar

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex.plugin import DuplexModelPlugin
from omniduplex.models.local.runtimes import require_runtimes
from omniduplex.models.local.session_state import EAR_RATE_HZ, LocalSessionState
from omniduplex.protocol.duplex import DuplexCapabilities, DuplexError, DuplexSessionConfig

UNIT_MS = 1000


class LocalDuplexPlugin(DuplexModelPlugin):
    """An ear that never closes and a voice behind it, on the CPU."""

    input_rate_hz: ClassVar[int] = EAR_RATE_HZ
    recognises_items: ClassVar[bool] = True

    def __init__(self, pipeline: PipelineConfig) -> None:
        require_runtimes()
        super().__init__(pipeline)

    def capabilities(self, max_sessions: int) -> DuplexCapabilities:
        """All of the base contract, lease and resume included."""
        several = max_sessions > 1
        return DuplexCapabilities(
            implementation_level="model_native_duplex",
            supports_model_native_turn_policy=True,
            supports_input_append=True,
            supports_barge_in=True,
            supports_client_commit=True,
            supports_playback_ack=True,
            supports_audio_truncate=True,
            supports_text_only_turn=True,
            supports_independent_io_streams=True,
            supports_multi_session=several,
            supports_multi_session_same_replica=several,
            supports_session_lease=True,
            supports_session_resume=True,
            required_input_modalities=("audio",),
            optional_input_modalities=(),
            adapter_patterns=("scheduler_data_plane",),
            signal_sources=("model_native", "client_event", "server_policy"),
            chunk_period_ms=UNIT_MS,
        )

    def validate_config(self, config: DuplexSessionConfig) -> None:
        """Refuse a reference voice; any voice name is an alias of the one voice there is."""
        if config.ref_audio is not None:
            raise DuplexError(
                "invalid_duplex_runtime_config",
                "this model speaks with its own voice; it cannot copy one from ref_audio",
                param="ref_audio",
            )

    def create_session_state(
        self, session_id: str, config: DuplexSessionConfig
    ) -> LocalSessionState:
        """A fresh state; it needs no file."""
        return LocalSessionState()
