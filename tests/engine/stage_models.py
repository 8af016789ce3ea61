"""Stages for the tests of the engines: importable by their dotted path."""

from collections.abc import Sequence

from omniduplex.engine.turn_plugin import StageStep, Turn, TurnFeatures, TurnPlugin, TurnStep
from omniduplex.engine.turns import (
    AnswerRequest,
    FinishReason,
    TurnChunk,
    TurnMessage,
    TurnRefused,
    TurnRequest,
)
from omniduplex.stages.messages import StageInput, StageMessage, StageOutput
from omniduplex.stages.model import StageModel


class Words(StageModel):
    """Gives a text back word by word; "fail" fails, "for ever" does not end."""

    def load(self) -> None:
        return

    def step(self, batch: Sequence[StageMessage]) -> None:
        for message in batch:
            if isinstance(message, StageInput):
                self._answer(message)

    def _answer(self, message: StageInput) -> None:
        if message.text == "fail":
            self.emit(StageOutput(message.request_id, error="asked to"))
            return
        words = message.text.split()
        for index, word in enumerate(words, 1):
            last = index == len(words) and message.text != "for ever"
            self.emit(StageOutput(message.request_id, text=word, finished=last))

    def close(self) -> None:
        return


class Loud(Words):
    """Gives every text back louder; "too loud" fails once it has begun."""

    def _answer(self, message: StageInput) -> None:
        if message.text == "loud":
            self.emit(StageOutput(message.request_id, error="it burst"))
            return
        output = StageOutput(message.request_id, text=message.text.upper(), finished=message.final)
        self.emit(output)


class DoesNotLoad(Words):
    def load(self) -> None:
        raise OSError("no weights")


class ForwardTurn(Turn):
    """Gives its text to the first stage, each stage's texts to the next, and the last one's out."""

    def __init__(self, turn_id: str, text: str, stages: int = 2) -> None:
        self._turn_id = turn_id
        self._text = text
        self._last = stages - 1

    def begin(self) -> Sequence[TurnStep]:
        return (StageStep(0, StageInput(f"{self._turn_id}-0", text=self._text)),)

    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        if stage_id == self._last:
            reason: FinishReason | None = "stop" if output.finished else None
            return (TurnChunk(text=output.text, finish_reason=reason),)
        name = f"{self._turn_id}-{stage_id + 1}"
        return (StageStep(stage_id + 1, StageInput(name, text=output.text, final=output.finished)),)


class BrokenTurn(ForwardTurn):
    """Cannot read what the stages say."""

    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        raise KeyError(stage_id)


class ForwardPlugin(TurnPlugin):
    """Answers and nothing else; a message that says "refuse" is refused."""

    input_rate_hz = 16_000

    @property
    def features(self) -> TurnFeatures:
        return TurnFeatures(supports_chat_completions=True)

    def create_turn(self, turn_id: str, request: TurnRequest) -> Turn:
        assert isinstance(request, AnswerRequest)
        (text,) = request.messages[-1].content
        assert isinstance(text, str)
        if text == "refuse":
            raise TurnRefused("invalid_value", "told to", param="messages")
        return ForwardTurn(turn_id, text)


def say(text: str) -> AnswerRequest:
    """A conversation of this one message."""
    return AnswerRequest(messages=(TurnMessage(role="user", content=(text,)),))
