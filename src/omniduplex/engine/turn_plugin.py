"""What a model provides to be asked turn by turn: one plugin, one `Turn` per request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from omniduplex.config.errors import ConfigError
from omniduplex.config.objects import load_object
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.turns import TurnChunk, TurnRequest
from omniduplex.stages.messages import StageInput, StageOutput


class StageStep(msgspec.Struct, frozen=True, gc=False):
    """Give this input to a stage; from then on its request belongs to the turn."""

    stage_id: int
    message: StageInput


TurnStep = StageStep | TurnChunk


class TurnFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests a deployment takes."""

    supports_chat_completions: bool = False
    """It answers conversations, beside live conversations on the same stages too."""
    supports_speech: bool = False
    supports_speed: bool = False
    """It speaks faster or slower, where it is asked to."""
    supports_transcription: bool = False
    languages: tuple[str, ...] = ()
    """Languages it recognises, as ISO 639-1 codes."""


class Turn(ABC):
    """The model's side of one request: says what the stages shall do, reads what they answer.

    Called on the engine loop, so every method is quick and never waits. Requests to stages get
    ids that begin with the turn's own id. An `error` of a stage ends the turn without asking it.
    """

    @abstractmethod
    def begin(self) -> Sequence[TurnStep]:
        """The first work."""

    @abstractmethod
    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        """What follows from an output of one of the turn's stage requests.

        With the chunk that has a `finish_reason` the turn is over, and what its stages still do
        for it is dropped.
        """


class TurnPlugin(ABC):
    """The class that `PipelineConfig.turn_plugin` names."""

    input_rate_hz: ClassVar[int]
    """Rate of the sound in the requests that `create_turn` gets, in Hz."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        self.pipeline = pipeline

    @property
    @abstractmethod
    def features(self) -> TurnFeatures:
        """Which requests it takes under this deployment."""

    @abstractmethod
    def create_turn(self, turn_id: str, request: TurnRequest) -> Turn:
        """A turn of a request that the features allow; called from any thread.

        Raises:
            TurnRefused: the model cannot do what the request asks for.
        """


def load_turn_plugin(pipeline: PipelineConfig) -> TurnPlugin | None:
    """The turn plugin of a pipeline, if it names one; raises `ConfigError` if it is none."""
    if pipeline.turn_plugin is None:
        return None
    plugin_class = load_object(pipeline.turn_plugin)
    if not (isinstance(plugin_class, type) and issubclass(plugin_class, TurnPlugin)):
        raise ConfigError(f"{pipeline.turn_plugin} is no TurnPlugin")
    plugin: TurnPlugin = plugin_class(pipeline)
    return plugin
