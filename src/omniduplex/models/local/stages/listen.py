"""Stage 0 of the embedded model: it hears every session all the time, and writes the answers."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, assert_never

from omniduplex.audio.pcm import byte_count, int16_to_float32
from omniduplex.audio.vad import VAD_RATE, VadState
from omniduplex.models.local import messages
from omniduplex.models.local.messages import (
    AudioWaits,
    ClearInput,
    CommitInput,
    ConfigureEar,
    Report,
    StartAnswer,
    Transcribe,
    TurnEnded,
    WatchSpeech,
    decode_to_listen,
    encode,
)
from omniduplex.models.local.sound_kind import Kinds
from omniduplex.models.local.stages.answers import Answers
from omniduplex.models.local.stages.ear import Ear
from omniduplex.models.local.stages.listen_parts import ListenOptions, ListenParts, load_parts
from omniduplex.models.local.stages.recognition_queue import RecognitionQueue
from omniduplex.models.local.stages.transcriptions import Transcriptions
from omniduplex.models.local.stages.turns import Action, Classify, Drop, Judge, Recognise, Tell
from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.stages.model import Emit, StageModel

UNRECOGNISED = "the recogniser failed"
# The VAD takes up to 0.4 ms for one on a slow CPU: so many keep a step around 50 ms, and those of
# live sessions fit into one.
FRAMES_PER_STEP = 128
# A session is told in such steps how much waits to be heard; a live stream never comes to one.
UNHEARD_STEP_MS = 5_000
_UNHEARD_STEP_BYTES = byte_count(UNHEARD_STEP_MS, VAD_RATE)

EarOrder = ConfigureEar | CommitInput | ClearInput | WatchSpeech

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Audio, and when it arrived, in s."""

    pcm: bytes
    arrived: float


@dataclass(slots=True)
class _Listener:
    """The ear of one session, what the VAD remembers of it, and the jobs it waits for.

    `waiting` is what the ear has yet to take, in the order in which it came.
    """

    request_id: str
    epoch: int
    ear: Ear
    vad_state: VadState = field(default_factory=VadState)
    jobs: dict[int, Future[None]] = field(default_factory=dict)
    waiting: deque[_Piece | EarOrder] = field(default_factory=deque)
    unheard_bytes: int = 0
    unheard_steps: int = 0
    arrived: float = 0.0


class ListenStage(StageModel):
    """Voice activity on the worker's thread; recognition, end of turn and answers in others."""

    Options = ListenOptions
    sleepless = True

    def __init__(
        self,
        options: Any,
        emit: Emit,
        build: Callable[[ListenOptions], ListenParts] = load_parts,
    ) -> None:
        super().__init__(options, emit)
        self._build = build
        # Guards the listeners, and the order of what they tell: results come from other threads.
        self._lock = threading.Lock()
        self._listeners: dict[str, _Listener] = {}

    def load(self) -> None:
        """Load and warm up all models."""
        self._parts = self._build(self.options)
        self._answers = Answers(
            self._parts.language_model,
            self._parts.answer_pool,
            self.emit,
            self._parts.clock,
            instructions=self.options.instructions,
            temperature=self.options.temperature,
        )
        self._recognitions = RecognitionQueue(self._parts.recognition_pool)
        self._transcriptions = Transcriptions(self._parts.recognise, self._recognitions, self.emit)

    def step(self, batch: Sequence[StageMessage]) -> bool:
        """Take all that came, and hear a bounded part of it: true if more is left to hear.

        An ear takes its audio and its orders in the order in which they came.
        """
        arrived = self._parts.clock()
        with self._lock:
            for message in batch:
                if isinstance(message, StageAbort):
                    self._abort(message.request_ids)
                elif message.data:
                    self._obey(message)
                elif listener := self._listeners.get(message.request_id):
                    self._queue(listener, _Piece(message.pcm, arrived))
            return self._hear()

    def close(self) -> None:
        """Drop all work and end the threads."""
        with self._lock:
            self._abort(tuple(self._listeners))
        self._answers.close()
        self._transcriptions.close()
        self._recognitions.close()
        parts = self._parts
        for pool in (parts.recognition_pool, parts.judge_pool, parts.answer_pool):
            pool.shutdown(cancel_futures=True)
        parts.language_model.close()

    def _abort(self, request_ids: tuple[str, ...]) -> None:
        for name in request_ids:
            listener = self._listeners.pop(name, None)
            for job in listener.jobs.values() if listener else ():
                job.cancel()
        self._answers.abort(request_ids)
        self._transcriptions.abort(request_ids)

    def _obey(self, message: StageInput) -> None:
        order = decode_to_listen(message.data)
        if isinstance(order, StartAnswer):
            self._answers.start(message.request_id, message.epoch, order.prompt)
            return
        if isinstance(order, Transcribe):
            self._transcriptions.start(message.request_id, message.epoch, message.pcm)
            return
        if isinstance(order, ConfigureEar) and order.prompt:
            self._answers.expect(order.prompt)
        listener = self._listeners.get(message.request_id)
        if isinstance(order, ConfigureEar) and listener is None:
            ear = Ear(order.settings)
            self._listeners[message.request_id] = _Listener(message.request_id, message.epoch, ear)
        elif listener is not None:
            listener.waiting.append(order)

    def _queue(self, listener: _Listener, piece: _Piece) -> None:
        listener.waiting.append(piece)
        listener.unheard_bytes += len(piece.pcm)
        self._tell_unheard(listener)

    def _tell_unheard(self, listener: _Listener) -> None:
        """Tell how much waits at most, whenever it is another step: its session bounds it."""
        steps = listener.unheard_bytes // _UNHEARD_STEP_BYTES
        if steps == listener.unheard_steps:
            return
        listener.unheard_steps = steps
        waits = AudioWaits((steps + 1) * UNHEARD_STEP_MS if steps else 0)
        report = encode(Report(0, waits))
        self.emit(StageOutput(listener.request_id, listener.epoch, data=report))

    def _tell_ear(self, listener: _Listener, order: EarOrder) -> list[Action]:
        match order:
            case ConfigureEar(settings):
                return listener.ear.configure(settings)
            case CommitInput(item_id, generation, turns_known):
                return listener.ear.commit(item_id, generation, turns_known)
            case ClearInput(generation):
                listener.vad_state = VadState()
                return listener.ear.clear(generation)
            case WatchSpeech(active):
                return listener.ear.watch(active)

    def _hear(self) -> bool:
        """Run the VAD over frames, one of each session at once; true if it stopped for now."""
        frames_heard = 0
        while frames_heard < FRAMES_PER_STEP:
            heard = [
                (listener, frame)
                for listener in self._listeners.values()
                if (frame := self._next_frame(listener)) is not None
            ]
            if not heard:
                return False
            states = [listener.vad_state for listener, _ in heard]
            frames = [int16_to_float32(frame) for _, frame in heard]
            probabilities = self._parts.vad.probabilities(states, frames)
            for (listener, _), probability in zip(heard, probabilities, strict=True):
                self._perform(listener, listener.ear.push(probability, listener.arrived))
            frames_heard += len(heard)
        return True

    def _next_frame(self, listener: _Listener) -> bytes | None:
        """The next frame that is whole; an order is obeyed when all before it has been heard."""
        while (frame := listener.ear.next_frame()) is None and listener.waiting:
            match listener.waiting.popleft():
                case _Piece(pcm, arrived):
                    listener.ear.append(pcm)
                    listener.arrived = arrived
                case order:
                    self._perform(listener, self._tell_ear(listener, order))
        if frame is not None:
            listener.unheard_bytes -= len(frame)
            if listener.unheard_steps:
                self._tell_unheard(listener)
        return frame

    def _perform(self, listener: _Listener, actions: list[Action]) -> None:
        parts = self._parts
        for action in actions:
            match action:
                case Tell():
                    self._tell(listener, action)
                case Recognise(job):
                    future = self._recognitions.submit(self._recognise, listener, action)
                    listener.jobs[job] = future
                case Judge(job, pcm):
                    listener.jobs[job] = parts.judge_pool.submit(self._judge, listener, job, pcm)
                case Classify():
                    self._classify(listener, action)
                case Drop(job):
                    if work_to_drop := listener.jobs.pop(job, None):
                        work_to_drop.cancel()
                case _:
                    assert_never(action)

    def _tell(self, listener: _Listener, told: Tell) -> None:
        metrics = told.metrics
        if isinstance(told.heard, TurnEnded):
            metrics = metrics | {messages.AT_TURN_END: self._parts.clock()}
        report = encode(Report(told.generation, told.heard))
        self.emit(StageOutput(listener.request_id, listener.epoch, data=report, metrics=metrics))

    def _recognise(self, listener: _Listener, work: Recognise) -> None:
        started = self._parts.clock()
        words = self._words(work)
        took_s = self._parts.clock() - started
        with self._lock:
            listener.jobs.pop(work.job, None)
            if not self._is_open(listener):
                return
            if words is None:
                actions = listener.ear.unrecognised(work.job, UNRECOGNISED)
            else:
                actions = listener.ear.recognised(work.job, words, took_s)
            self._perform(listener, actions)

    def _words(self, work: Recognise) -> str | None:
        """None when recognition failed: the turn ends without words, the ear goes on."""
        recognise = self._parts.glimpse if work.early else self._parts.recognise
        try:
            return recognise(work.pcm).text
        except Exception:
            logger.exception("a recognition failed")
            return None

    def _judge(self, listener: _Listener, job: int, pcm: bytes) -> None:
        started = self._parts.clock()
        try:
            probability = self._parts.judge(pcm)
        except Exception:  # a turn that nobody judged does not sound complete
            logger.exception("an end of turn could not be judged")
            probability = 0.0
        took_s = self._parts.clock() - started
        with self._lock:
            listener.jobs.pop(job, None)
            if self._is_open(listener):
                listener.ear.judged(job, probability, took_s)

    def _classify(self, listener: _Listener, work: Classify) -> None:
        kinds = self._parts.kinds
        if kinds is not None:
            future = self._parts.judge_pool.submit(self._tell_kinds, listener, work, kinds)
            listener.jobs[work.job] = future

    def _tell_kinds(
        self, listener: _Listener, work: Classify, kinds: Callable[[bytes, int], Kinds]
    ) -> None:
        found: Kinds | None = None
        try:
            found = kinds(work.pcm, work.frames)
        except Exception:  # its words will tell
            logger.exception("the kind of a sound could not be told")
        with self._lock:
            listener.jobs.pop(work.job, None)
            if found is not None and self._is_open(listener):
                self._perform(listener, listener.ear.classified(work.job, found))

    def _is_open(self, listener: _Listener) -> bool:
        return self._listeners.get(listener.request_id) is listener
