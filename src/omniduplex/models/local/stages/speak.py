"""Stage 1 of the embedded model: it speaks clauses, those of several answers in turns."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from omniduplex.models.local import messages
from omniduplex.models.local.assets import asset_path
from omniduplex.models.local.clauses import speakable
from omniduplex.models.local.stages.speech_slices import FIRST_SLICE_MS, SLICE_MS, slice_speech
from omniduplex.models.local.stages.threads import nice_pool
from omniduplex.models.local.voice import Voice
from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.stages.model import Emit, StageModel

logger = logging.getLogger(__name__)

WARM_UP_TEXT = "Hello."


class SpeakOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stage 1 can be told in a deploy file."""

    voice_asset: str = "piper_joe"
    voice_name: str = "en_US-joe-medium"
    """The voice's file in the asset, without `.onnx`."""
    voice_threads: int = 1
    workers: int = 1
    """Clauses spoken at the same time."""
    nice: int = 0
    """Niceness of the speaking threads above that of the stage (0 to 19)."""
    assets_dir: str | None = None


@dataclass(frozen=True, slots=True)
class SpeakParts:
    """The loaded voice, which says a text at a speed, its `rate` in Hz, and its threads."""

    say: Callable[[str, float], bytes]
    rate: int
    pool: Executor
    clock: Callable[[], float] = time.monotonic


def load_parts(options: SpeakOptions) -> SpeakParts:
    """Load and warm up the voice."""
    folder = asset_path(
        options.voice_asset, Path(options.assets_dir).expanduser() if options.assets_dir else None
    )
    model = folder / f"{options.voice_name}.onnx"
    voice = Voice(model, model.with_name(f"{model.name}.json"), options.voice_threads)
    voice.say(WARM_UP_TEXT)
    pool = nice_pool(options.workers, options.nice, "speak")
    return SpeakParts(say=voice.say, rate=voice.rate, pool=pool)


@dataclass(slots=True, eq=False)
class Speech:
    """One answer being spoken: clauses that wait, and what is known of it."""

    request_id: str
    epoch: int
    asked_at: float
    clauses: deque[StageInput] = field(default_factory=deque)
    busy: bool = False
    spoke: bool = False
    silent_text: str = ""
    """Text without a sound of its own; it goes with the next sound."""


class SpeechQueue:
    """Hands out clauses, one of each speech in turn, and of one speech one at a time."""

    def __init__(self) -> None:
        self._speeches: dict[str, Speech] = {}
        self._turns: deque[Speech] = deque()

    def add(self, clause: StageInput, now: float) -> None:
        """Queue a clause behind those of its request."""
        speech = self._speeches.get(clause.request_id)
        if speech is None:
            speech = Speech(clause.request_id, clause.epoch, now)
            self._speeches[clause.request_id] = speech
        if not speech.clauses and not speech.busy:
            self._turns.append(speech)
        speech.clauses.append(clause)

    def take(self) -> tuple[Speech, StageInput] | None:
        """The next clause to speak; its speech is busy until `done`."""
        if not self._turns:
            return None
        speech = self._turns.popleft()
        speech.busy = True
        return speech, speech.clauses.popleft()

    def done(self, speech: Speech) -> None:
        """The clause taken last of this speech has been spoken."""
        speech.busy = False
        if speech.clauses and self.holds(speech):
            self._turns.append(speech)

    def holds(self, speech: Speech) -> bool:
        """Whether the speech is still wanted."""
        return self._speeches.get(speech.request_id) is speech

    def drop(self, request_id: str) -> None:
        """Forget a speech and all its clauses; an unknown id is ignored."""
        speech = self._speeches.pop(request_id, None)
        if speech is not None and speech in self._turns:
            self._turns.remove(speech)

    def clear(self) -> None:
        """Forget everything."""
        self._speeches.clear()
        self._turns.clear()


class SpeakStage(StageModel):
    """Clauses in, in order; audio slices out, each with its words, and the end after the last."""

    Options = SpeakOptions
    sleepless = True

    def __init__(
        self, options: Any, emit: Emit, build: Callable[[SpeakOptions], SpeakParts] = load_parts
    ) -> None:
        super().__init__(options, emit)
        self._build = build
        self._lock = threading.Lock()
        self._queue = SpeechQueue()

    def load(self) -> None:
        """Load and warm up the voice."""
        self._parts = self._build(self.options)

    def step(self, batch: Sequence[StageMessage]) -> None:
        """Queue clauses and drop speeches, in the order in which they came."""
        now = self._parts.clock()
        for message in batch:
            with self._lock:
                if isinstance(message, StageAbort):
                    for request_id in message.request_ids:
                        self._queue.drop(request_id)
                    continue
                self._queue.add(message, now)
            self._parts.pool.submit(self._speak_all)

    def close(self) -> None:
        """Drop all work and end the threads."""
        with self._lock:
            self._queue.clear()
        self._parts.pool.shutdown(cancel_futures=True)

    def _speak_all(self) -> None:
        while True:
            with self._lock:
                work = self._queue.take()
            if work is None:
                return
            speech, clause = work
            try:
                self._speak(speech, clause)
            except Exception as error:  # one speech fails, the stage lives
                logger.exception("a speech failed")
                self._end(speech, error=str(error))
            with self._lock:
                self._queue.done(speech)

    def _speak(self, speech: Speech, clause: StageInput) -> None:
        speech.silent_text += clause.text
        speed = messages.decode_how_to_speak(clause.data).speed
        pcm = self._parts.say(speakable(clause.text), speed)
        if pcm:
            text, speech.silent_text = speech.silent_text, ""
            first_ms = SLICE_MS if speech.spoke else FIRST_SLICE_MS
            for piece, words in slice_speech(pcm, self._parts.rate, text, first_ms):
                self._send(speech, piece, words)
        if clause.final:
            self._end(speech, text=speech.silent_text)

    def _send(self, speech: Speech, pcm: bytes, text: str) -> None:
        output = StageOutput(
            speech.request_id,
            speech.epoch,
            pcm=pcm,
            sample_rate_hz=self._parts.rate,
            text=text,
            metrics={} if speech.spoke else self._first_metrics(speech),
        )
        speech.spoke = True
        with self._lock:  # an abort returns only when nothing can follow it
            if self._queue.holds(speech):
                self.emit(output)

    def _end(self, speech: Speech, *, text: str = "", error: str = "") -> None:
        output = StageOutput(
            speech.request_id,
            speech.epoch,
            sample_rate_hz=self._parts.rate,
            text=text,
            finished=not error,
            error=error,
        )
        with self._lock:
            if self._queue.holds(speech):
                self._queue.drop(speech.request_id)
                self.emit(output)

    def _first_metrics(self, speech: Speech) -> dict[str, float]:
        now = self._parts.clock()
        return {
            messages.AT_FIRST_CLAUSE_IN: speech.asked_at,
            messages.AT_FIRST_AUDIO_OUT: now,
            messages.FIRST_SPEECH: now - speech.asked_at,
        }
