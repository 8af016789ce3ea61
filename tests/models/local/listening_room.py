"""A listening stage without its models, and what it tells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.models.local.fake_language_model import DONE, FakeLanguageModel
from tests.models.local.manual_executor import ManualExecutor
from tests.models.local.speech import told_of_words

from omniduplex.audio.pcm import SAMPLE_BYTES, byte_count
from omniduplex.audio.vad import VadState
from omniduplex.models.local.asr import Recognition
from omniduplex.models.local.messages import (
    ConfigureEar,
    EarSettings,
    FromListen,
    Heard,
    KeptListening,
    Report,
    ToListen,
    decode_from_listen,
    encode,
)
from omniduplex.models.local.sound_kind import Kinds
from omniduplex.models.local.stages.listen import ListenStage
from omniduplex.models.local.stages.listen_parts import ListenOptions, ListenParts
from omniduplex.stages.messages import StageAbort, StageInput, StageOutput

SEMANTIC = EarSettings(hold_ms=992, complete_hold_ms=320)


def silence(ms: int) -> bytes:
    return bytes(byte_count(ms, 16_000))


def speech(ms: int, loudness: int = 8000) -> bytes:
    return loudness.to_bytes(2, "little") * (byte_count(ms, 16_000) // 2)


Told = FromListen | Heard


def message_in(output: StageOutput) -> Told:
    """What an output tells, taken out of an ear's report."""
    message = decode_from_listen(output.data)
    return message.heard if isinstance(message, Report) else message


def hear_out(stage: ListenStage, *batch: StageInput | StageAbort) -> None:
    """Step over the batch until nothing of it is left to hear."""
    while stage.step(batch):
        batch = ()


@dataclass
class Room:
    """A listening stage: loud frames are speech, and words are how loud the speech was."""

    out: list[StageOutput] = field(default_factory=list)
    recognition_pool: ManualExecutor = field(default_factory=ManualExecutor)
    judge_pool: ManualExecutor = field(default_factory=ManualExecutor)
    answer_pool: ManualExecutor = field(default_factory=ManualExecutor)
    model: FakeLanguageModel = field(default_factory=lambda: FakeLanguageModel(DONE))
    vad_batches: list[int] = field(default_factory=list)
    vad_states: dict[int, VadState] = field(default_factory=dict)
    recognised: int = 0
    glimpses: int = 0
    classified: list[tuple[int, int]] = field(default_factory=list)
    broken: bool = False
    now: float = 5.0
    while_recognising: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.stage = ListenStage(ListenOptions(), self.out.append, build=lambda _: self._parts())
        self.stage.load()

    def _parts(self) -> ListenParts:
        return ListenParts(
            vad=self,
            recognise=self._recognise,
            glimpse=self._glimpse,
            judge=self._judge,
            kinds=self._kinds,
            language_model=self.model,
            recognition_pool=self.recognition_pool,
            judge_pool=self.judge_pool,
            answer_pool=self.answer_pool,
            clock=lambda: self.now,
        )

    def probabilities(
        self, states: Sequence[VadState], frames: Sequence[NDArray[np.float32]]
    ) -> list[float]:
        self.vad_batches.append(len(frames))
        self.vad_states |= {id(state): state for state in states}
        return [0.9 if float(np.abs(frame).max()) > 0.01 else 0.05 for frame in frames]

    def _recognise(self, pcm: bytes) -> Recognition:
        self.recognised += 1
        self.now += 0.25
        self.while_recognising()
        if self.broken:
            raise RuntimeError("no recogniser")
        return Recognition(str(np.frombuffer(pcm, np.int16).max()), 0.0, 1.0)

    def _glimpse(self, pcm: bytes) -> Recognition:
        self.glimpses += 1
        return Recognition(f"{len(pcm) // 32} ms", 0.0, 1.0)

    def _kinds(self, pcm: bytes, frames: int) -> Kinds:
        self.classified.append((len(pcm) // SAMPLE_BYTES, frames))
        if self.broken:
            raise RuntimeError("no kinds")
        return Kinds(0.9, 0.1, 0.0)

    def _judge(self, pcm: bytes) -> float:
        self.now += 0.0625
        if self.broken:
            raise RuntimeError("no judge")
        return 1.0

    def tell(self, order: ToListen, request_id: str = "ear", epoch: int = 2) -> StageInput:
        return StageInput(request_id, epoch, data=encode(order))

    def open(self, *request_ids: str, settings: EarSettings = EarSettings()) -> None:  # noqa: B008
        self.stage.step([self.tell(ConfigureEar(settings), name) for name in request_ids])

    def hear(self, pcm: bytes, request_id: str = "ear") -> None:
        hear_out(self.stage, StageInput(request_id, 2, pcm))

    def told(self, request_id: str = "ear") -> list[Told]:
        told = [message_in(out) for out in self.out if out.request_id == request_id]
        return [told_of_words(message) for message in told if message != KeptListening()]
