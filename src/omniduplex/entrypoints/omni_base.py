"""What all in-process doors share: a pipeline, and the engine that runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.omni_engine_base import OmniEngineBase

EngineT = TypeVar("EngineT", bound=OmniEngineBase[Any])
Self = TypeVar("Self", bound="OmniBase[Any]")


class OmniBase(ABC, Generic[EngineT]):
    """Loads a deployed model and keeps its engine running until `shutdown`."""

    def __init__(
        self,
        model: str | None = None,
        *,
        deploy_config: str | Path | None = None,
        pipeline: PipelineConfig | None = None,
    ) -> None:
        """Start the engine; returns when every stage is ready, which can take seconds.

        Raises:
            ConfigError: no such model, or its deploy file is wrong.
            StageStartError: a stage did not come up.
        """
        self.pipeline = pipeline or load_pipeline(model, deploy_config)
        self._engine = self._create_engine(self.pipeline)
        self._engine.start()

    @abstractmethod
    def _create_engine(self, pipeline: PipelineConfig) -> EngineT:
        """Make the engine, not started."""

    @property
    def alive(self) -> bool:
        """Whether the engine can serve now."""
        return self._engine.alive

    def shutdown(self) -> None:
        """End the engine; returns when no worker is left."""
        self._engine.shutdown()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()
