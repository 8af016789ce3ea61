"""Turns that a test runs by hand: what was asked without the session, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.turn_plugin import Turn, TurnFeatures, TurnPlugin, TurnStep
from omniduplex.engine.turns import AnswerRequest, TurnRefused, TurnRequest
from omniduplex.stages.messages import StageOutput


class ScriptedTurn(Turn):
    """Asks no stage for anything."""

    def begin(self) -> Sequence[TurnStep]:
        return ()

    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        return ()


class ScriptedTurns(TurnPlugin):
    """Remembers what it was asked, by turn; refuses all of it when told to."""

    input_rate_hz = 16_000

    def __init__(self) -> None:
        super().__init__(PipelineConfig(name="scripted", model="scripted", stages=()))
        self.asked: dict[str, AnswerRequest] = {}
        self.refuses = False

    @property
    def features(self) -> TurnFeatures:
        return TurnFeatures(supports_chat_completions=True)

    def create_turn(self, turn_id: str, request: TurnRequest) -> Turn:
        if self.refuses:
            raise TurnRefused("unsupported", "not like this", param="tools")
        assert isinstance(request, AnswerRequest)
        self.asked[turn_id] = request
        return ScriptedTurn()
