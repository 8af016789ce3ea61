"""Stages that stand still while the test says so; for workers in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.models.local.fake_language_model import DONE, FakeLanguageModel

from omniduplex.audio.vad import VadState
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.stage import EchoStage
from omniduplex.models.local.asr import Recognition
from omniduplex.models.local.stages.listen import ListenStage
from omniduplex.models.local.stages.listen_parts import ListenOptions, ListenParts
from omniduplex.stages.messages import StageMessage
from omniduplex.stages.model import Emit

GO = threading.Event()
"""Whether they work; they wait for it, so one test at a time uses them."""


def path_of(stage: type) -> str:
    """How a pipeline names it."""
    return f"{stage.__module__}:{stage.__name__}"


class SlowEcho(EchoStage):
    """Echo that takes no step while it stands still."""

    def __init__(self, options: EchoOptions, emit: Emit) -> None:
        super().__init__(options, emit)

    def step(self, batch: Sequence[StageMessage]) -> None:
        GO.wait()
        super().step(batch)


class _SlowDetector:
    """Takes loud frames for speech, when it goes on."""

    def probabilities(
        self, states: Sequence[VadState], frames: Sequence[NDArray[np.float32]]
    ) -> list[float]:
        GO.wait()
        return [0.9 if float(np.abs(frame).max()) > 0.01 else 0.05 for frame in frames]


def _parts(options: ListenOptions) -> ListenParts:
    heard: Callable[[bytes], Recognition] = lambda pcm: Recognition("words", 0.0, 1.0)  # noqa: E731
    return ListenParts(
        vad=_SlowDetector(),
        recognise=heard,
        glimpse=heard,
        judge=lambda pcm: 1.0,
        kinds=None,
        language_model=FakeLanguageModel(DONE),
        recognition_pool=ThreadPoolExecutor(1),
        judge_pool=ThreadPoolExecutor(1),
        answer_pool=ThreadPoolExecutor(1),
    )


class SlowListening(ListenStage):
    """The ear of the embedded model without its weights: it hears nothing while it stands still."""

    def __init__(self, options: Any, emit: Emit) -> None:
        super().__init__(options, emit, build=_parts)


class Silent(EchoStage):
    """A stage that is given nothing."""
