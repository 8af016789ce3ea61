"""Stages for the tests of the engines: importable by their dotted path."""

from collections.abc import Sequence

from omniduplex.stages.messages import StageInput, StageMessage, StageOutput
from omniduplex.stages.model import StageModel


class Words(StageModel):
    """Gives a text back word by word; "fail" fails."""

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
    """Gives every text back louder."""

    def _answer(self, message: StageInput) -> None:
        output = StageOutput(message.request_id, text=message.text.upper(), finished=message.final)
        self.emit(output)


class DoesNotLoad(Words):
    def load(self) -> None:
        raise OSError("no weights")
