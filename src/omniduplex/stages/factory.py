"""Where a stage runs is a line of its config."""

from __future__ import annotations

from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.client import StageClient, ThreadStageClient
from omniduplex.stages.inline import InlineStageClient
from omniduplex.stages.process_client import ProcessStageClient

CLIENTS: dict[str, type[StageClient]] = {
    "process": ProcessStageClient,
    "thread": ThreadStageClient,
    "inline": InlineStageClient,
}


def create_client(config: StageConfig) -> StageClient:
    """The client for where the stage is to run."""
    return CLIENTS[config.worker](config)
