"""The echo model, deployed so that its sessions can be resumed."""

from __future__ import annotations

from typing import Any

import msgspec

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.models.echo.plugin import EchoDuplexPlugin
from omniduplex.protocol.duplex import DuplexCapabilities


class ResumableEchoPlugin(EchoDuplexPlugin):
    """Echo, which keeps its state while its client is away."""

    def capabilities(self, max_sessions: int) -> DuplexCapabilities:
        """What echo can do, and resume."""
        return msgspec.structs.replace(
            super().capabilities(max_sessions), supports_session_resume=True
        )


def resumable_echo(**limits: Any) -> PipelineConfig:
    """The deployed echo model with these session limits."""
    pipeline = load_pipeline("omniduplex/echo", None)
    return msgspec.structs.replace(
        pipeline,
        duplex_plugin=f"{__name__}:{ResumableEchoPlugin.__name__}",
        duplex_session=msgspec.structs.replace(pipeline.duplex_session, **limits),
    )
