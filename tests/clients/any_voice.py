"""Echo that takes any voice sample, for code that brings one; it speaks in its own voice."""

from __future__ import annotations

import msgspec

from omniduplex.models.echo.plugin import EchoDuplexPlugin
from omniduplex.protocol.duplex import DuplexSessionConfig


class AnyVoiceEcho(EchoDuplexPlugin):
    """The echo model without an opinion on `ref_audio`."""

    def validate_config(self, config: DuplexSessionConfig) -> None:
        super().validate_config(msgspec.structs.replace(config, ref_audio=None))
