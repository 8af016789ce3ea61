"""The in-process door for turn requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.async_omni_engine import AsyncOmniEngine, TurnEngineBase
from omniduplex.entrypoints.omni_base import OmniBase
from omniduplex.stages.messages import StageInput, StageOutput

TurnEngineT = TypeVar("TurnEngineT", bound=TurnEngineBase[Any])


class AsyncOmniBase(OmniBase[TurnEngineT]):
    """Turn requests over any engine that takes them."""

    def generate(self, request: StageInput) -> AsyncIterator[StageOutput]:
        """Run one request through the pipeline; closing the iterator aborts it.

        Raises:
            StageFailed: a stage answered with an error or died.
        """
        return self._engine.generate(request)


class AsyncOmni(AsyncOmniBase[AsyncOmniEngine]):
    """A model served turn by turn."""

    def _create_engine(self, pipeline: PipelineConfig) -> AsyncOmniEngine:
        return AsyncOmniEngine(pipeline)
