"""Two echoes in one deployment: one speaks in the conversation, and one answers beside it.

The first says as much as it hears, so that its answers are under way for as long as a test likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from tests.entrypoints.running import running

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.turn_plugin import TurnFeatures
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.models.echo.turn import EchoTurnPlugin


class BesideTurns(EchoTurnPlugin):
    """Takes its turns to the second stage."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        super().__init__(msgspec.structs.replace(pipeline, stages=pipeline.stages[1:]))

    @property
    def features(self) -> TurnFeatures:
        """Of a stage that says as much as it hears as well: nothing then, and for ever."""
        return TurnFeatures(supports_chat_completions=True)


@contextmanager
def two_echoes(*, beside_ends: bool) -> Iterator[str]:
    """The base URL of the server; what is beside ends at once, or never by itself."""
    pipeline = load_pipeline("omniduplex/echo", None)
    (stage,) = pipeline.stages
    beside = {} if beside_ends else {"paced": True}
    pipeline = msgspec.structs.replace(
        pipeline,
        turn_plugin="tests.contract.beside:BesideTurns",
        stages=(
            msgspec.structs.replace(stage, options={"paced": True}),
            msgspec.structs.replace(stage, stage_id=1, name="beside", options=beside),
        ),
    )
    with DuplexOmni(pipeline=pipeline) as omni, running(create_app(omni)) as server:
        yield server.base
