"""The echo model, deployed as if it had eyes."""

from __future__ import annotations

import msgspec

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.models.echo.plugin import EchoDuplexPlugin
from omniduplex.protocol.duplex import DuplexCapabilities


class SeeingEchoPlugin(EchoDuplexPlugin):
    """Echo, which takes images and says nothing of them."""

    def capabilities(self, max_sessions: int) -> DuplexCapabilities:
        """What echo can do, and see."""
        return msgspec.structs.replace(
            super().capabilities(max_sessions), supports_image_input=True
        )


def seeing_echo() -> PipelineConfig:
    """The deployed echo model, with eyes."""
    pipeline = load_pipeline("omniduplex/echo", None)
    plugin = f"{__name__}:{SeeingEchoPlugin.__name__}"
    return msgspec.structs.replace(pipeline, duplex_plugin=plugin)
