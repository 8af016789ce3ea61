"""The in-process door for turn requests from programs without an event loop."""

from __future__ import annotations

from collections.abc import Generator

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.async_omni_engine import AsyncOmniEngine
from omniduplex.engine.turn_plugin import TurnFeatures
from omniduplex.engine.turns import TurnChunk, TurnRequest
from omniduplex.entrypoints.omni_base import OmniBase


class Omni(OmniBase[AsyncOmniEngine]):
    """A model asked turn by turn, by calls that block; its deployment says `session_mode: turn`."""

    def _create_engine(self, pipeline: PipelineConfig) -> AsyncOmniEngine:
        return AsyncOmniEngine(pipeline)

    @property
    def turn_features(self) -> TurnFeatures:
        """Which turn requests the deployed model takes."""
        return self._engine.turn_features

    def generate(self, request: TurnRequest) -> Generator[TurnChunk, None, None]:
        """Run one turn and yield its chunks as they come; closing the generator aborts it.

        Raises:
            TurnRefused: the model does not take it, or too many turns run already.
            StageFailed: a stage answered with an error or died, or too much was left unread.
        """
        return self._engine.stream(request)
