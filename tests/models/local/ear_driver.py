"""An ear without a stage, which hears speech where a test puts it."""

from collections.abc import Callable, Sequence

import numpy as np
from tests.models.local.speech import told_of_words

from omniduplex.models.local.messages import (
    EarSettings,
    Heard,
    KeptListening,
)
from omniduplex.models.local.stages.ear import FRAME_MS, SAMPLES_PER_MS, Ear
from omniduplex.models.local.stages.turns import Action, Classify, Drop, Judge, Recognise, Tell

SERVER = EarSettings()

SEMANTIC = EarSettings(hold_ms=992, complete_hold_ms=320)

MANUAL = EarSettings(finds_turns=False)

Span = tuple[int, int]


def audio(start_ms: int, stop_ms: int) -> bytes:
    """PCM in which every sample is the ms at which it is heard."""
    ms = np.arange(start_ms, stop_ms) % 32768
    return np.repeat(ms, SAMPLES_PER_MS).astype(np.int16).tobytes()


def span(pcm: bytes) -> Span:
    """The ms in which this audio was heard."""
    samples = np.frombuffer(pcm, np.int16)
    return (int(samples[0]), int(samples[-1]) + 1) if len(samples) else (0, 0)


class Driver:
    """An ear that hears speech in the given spans of ms, and what it told and asked for."""

    def __init__(self, *speech: Span, settings: EarSettings = SERVER) -> None:
        self.ear = Ear(settings)
        self.speech = speech
        self.now_ms = 0
        self.told: list[Tell] = []
        self.recognitions: dict[int, Span] = {}
        self.judgements: dict[int, Span] = {}
        self.glimpses: dict[int, Span] = {}
        self.classified: dict[int, tuple[int, bytes]] = {}
        self.dropped: list[int] = []
        self.answer: Callable[[Span], str] | None = None
        self._frames = 0

    def hear(self, ms: int, slices: Sequence[int] = ()) -> None:
        """Hear that much more audio, in appends that end after these many ms."""
        stop = self.now_ms + ms
        for end in (*(self.now_ms + cut for cut in sorted(slices) if 0 < cut < ms), stop):
            self.ear.append(audio(self.now_ms, end))
            self.now_ms = end
            while self.ear.next_frame() is not None:
                at = self._frames * FRAME_MS
                self._frames += 1
                spoken = any(start <= at < end for start, end in self.speech)
                self.do(self.ear.push(0.9 if spoken else 0.05, arrived=self.now_ms / 1000))

    def do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Tell():
                    self.told.append(action)
                case Recognise(job, pcm, early=True):
                    self.glimpses[job] = span(pcm)
                case Recognise(job, pcm):
                    self.recognitions[job] = span(pcm)
                case Classify(job, pcm, frames):
                    self.classified[job] = (frames, pcm)
                case Judge(job, pcm):
                    self.judgements[job] = span(pcm)
                case Drop(job):
                    self.dropped.append(job)
                    self.recognitions.pop(job, None)
                    self.judgements.pop(job, None)
                    self.glimpses.pop(job, None)
                    self.classified.pop(job, None)
        if self.answer and self.recognitions:
            job, heard = self.recognitions.popitem()
            self.do(self.ear.recognised(job, self.answer(heard), 0.2))

    def recognise(self, words: str) -> Span:
        """Give the oldest recognition that is asked for its words; return what it heard."""
        job = min(self.recognitions)
        heard = self.recognitions.pop(job)
        self.do(self.ear.recognised(job, words, 0.2))
        return heard

    def judge(self, probability: float) -> Span:
        job = min(self.judgements)
        self.ear.judged(job, probability, 0.05)
        return self.judgements.pop(job)

    @property
    def events(self) -> list[Heard]:
        """What was told, without the units of mere listening and without how it sounded."""
        return [
            told_of_words(tell.heard)
            for tell in self.told
            if not isinstance(tell.heard, KeptListening)
        ]
