"""One answer's way through both stages: the first writes it, the second speaks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.models.local.messages import (
    AnswerEnded,
    AnswerText,
    HowToSpeak,
    StartAnswer,
    ToolCalled,
    decode_from_listen,
    encode,
)
from omniduplex.stages.messages import StageInput, StageOutput

LISTEN_STAGE, SPEAK_STAGE = 0, 1


class ToStage(msgspec.Struct, frozen=True):
    """An input for a stage that the answer passes through."""

    stage_id: int
    message: StageInput


class Said(msgspec.Struct, frozen=True):
    """A piece of the answer; `pcm` int16 mono at `rate_hz`, empty in an answer of text alone."""

    text: str
    pcm: bytes = b""
    rate_hz: int = 0


AnswerStep = ToStage | Said | ToolCalled | AnswerEnded


def clause(
    request_id: str, text: str, *, final: bool, epoch: int = 0, speed: float = 1.0
) -> StageInput:
    """What stage 1 speaks next of a request, so many times as fast as usual."""
    data = b"" if speed == 1.0 else encode(HowToSpeak(speed))
    return StageInput(request_id, epoch, text=text, final=final, data=data)


@dataclass(slots=True)
class AnswerPath:
    """Where an answer is; its end comes when all of it is written, and spoken if it is to be."""

    listen_id: str
    speak_id: str
    epoch: int
    speak: bool
    speed: float = 1.0
    _voiced: bool = False
    """Whether stage 1 has work for it."""
    _ended: AnswerEnded | None = None

    @property
    def request_ids(self) -> tuple[str, str]:
        """Its requests on the two stages."""
        return self.listen_id, self.speak_id

    def start(self, prompt: ResponsePrompt) -> ToStage:
        """Have stage 0 write it."""
        order = encode(StartAnswer(prompt))
        return ToStage(LISTEN_STAGE, StageInput(self.listen_id, self.epoch, final=True, data=order))

    def take(self, stage_id: int, output: StageOutput) -> Sequence[AnswerStep]:
        """What follows from an output, which is no error, of one of its requests."""
        if stage_id == SPEAK_STAGE:
            return self._take_speech(output)
        match decode_from_listen(output.data):
            case AnswerText() if self.speak:
                self._voiced = True
                return (self._voice(output.text),)
            case AnswerText():
                return (Said(output.text),)
            case ToolCalled() as call:
                return (call,)
            case AnswerEnded() as ended:
                self._ended = ended
                return (self._voice("", final=True),) if self._voiced else (ended,)
            case heard:
                raise TypeError(f"an answer told {heard}, which is the ear's to tell")

    def _take_speech(self, output: StageOutput) -> Sequence[AnswerStep]:
        steps: list[AnswerStep] = []
        if output.pcm or output.text:
            steps.append(Said(output.text, output.pcm, output.sample_rate_hz))
        if output.finished and self._ended:
            steps.append(self._ended)
        return steps

    def _voice(self, text: str, *, final: bool = False) -> ToStage:
        return ToStage(
            SPEAK_STAGE,
            clause(self.speak_id, text, final=final, epoch=self.epoch, speed=self.speed),
        )
