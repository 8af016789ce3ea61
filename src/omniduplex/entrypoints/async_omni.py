"""The in-process door for turn requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.async_omni_engine import AsyncOmniEngine, TurnEngineBase
from omniduplex.engine.turn_plugin import TurnFeatures
from omniduplex.engine.turns import TurnChunk, TurnRequest
from omniduplex.entrypoints.omni_base import OmniBase

TurnEngineT = TypeVar("TurnEngineT", bound=TurnEngineBase[Any])


class AsyncOmniBase(OmniBase[TurnEngineT]):
    """Turn requests over any engine that takes them."""

    @property
    def turn_features(self) -> TurnFeatures:
        """Which turn requests the deployed model takes."""
        return self._engine.turn_features

    def generate(self, request: TurnRequest) -> AsyncGenerator[TurnChunk, None]:
        """Run one turn and yield its chunks as they come; closing the generator aborts it.

        Raises:
            TurnRefused: the model does not take it, or too many turns run already.
            StageFailed: a stage answered with an error or died, or too much was left unread.
        """
        return self._engine.generate(request)

    async def active_turn_count(self) -> int:
        """How many turns run now."""
        return await self._engine.active_turns()


class AsyncOmni(AsyncOmniBase[AsyncOmniEngine]):
    """A model served turn by turn; its deployment says `session_mode: turn`."""

    def _create_engine(self, pipeline: PipelineConfig) -> AsyncOmniEngine:
        return AsyncOmniEngine(pipeline)
