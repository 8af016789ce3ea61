"""Recordings that a listening stage recognises beside its ears, a window at a time."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from omniduplex.audio.pcm import float32_to_int16, int16_to_float32
from omniduplex.models.local.asr import Recognition, split_windows
from omniduplex.models.local.messages import Transcribed, encode
from omniduplex.models.local.stages.recognition_queue import RecognitionQueue
from omniduplex.stages.messages import StageOutput
from omniduplex.stages.model import Emit

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Recording:
    """The windows to come, and the words of those before."""

    request_id: str
    epoch: int
    windows: Iterator[bytes]
    words: list[str] = field(default_factory=list)


class Transcriptions:
    """Recognises recordings when no ear waits for words.

    A recording queues anew after each window, so that a long one leaves room for what an ear has
    just heard and for other recordings, and an aborted one soon ends.
    """

    def __init__(
        self, recognise: Callable[[bytes], Recognition], queue: RecognitionQueue, emit: Emit
    ) -> None:
        self._recognise = recognise
        self._queue = queue
        self._emit = emit
        self._lock = threading.Lock()
        self._recordings: dict[str, _Recording] = {}

    def start(self, request_id: str, epoch: int, pcm: bytes) -> None:
        """Begin with 16 kHz PCM; its words come out as one output of the request."""
        recording = _Recording(request_id, epoch, _windows(pcm))
        with self._lock:
            self._recordings[request_id] = recording
        self._queue.submit_patient(partial(self._work, recording))

    def abort(self, request_ids: Iterable[str]) -> None:
        """Stop these recordings; ids of none are ignored."""
        with self._lock:
            for request_id in request_ids:
                self._recordings.pop(request_id, None)

    def close(self) -> None:
        """Stop all recordings."""
        with self._lock:
            self._recordings.clear()

    def _work(self, recording: _Recording) -> None:
        if not self._is_wanted(recording):
            return
        try:
            window = next(recording.windows, None)
            if window is not None and (words := self._recognise(window).text):
                recording.words.append(words)
        except Exception as error:  # one recording fails, the stage lives
            logger.exception("a transcription failed")
            self._end(recording, error=f"the recording could not be recognised: {error}")
            return
        if window is None:
            self._end(recording)
        elif self._is_wanted(recording):
            self._queue.submit_patient(partial(self._work, recording))

    def _is_wanted(self, recording: _Recording) -> bool:
        with self._lock:
            return self._recordings.get(recording.request_id) is recording

    def _end(self, recording: _Recording, *, error: str = "") -> None:
        output = StageOutput(
            recording.request_id,
            recording.epoch,
            finished=not error,
            data=b"" if error else encode(Transcribed(" ".join(recording.words))),
            error=error,
        )
        with self._lock:  # an abort returns only when nothing can follow it
            if self._recordings.get(recording.request_id) is recording:
                del self._recordings[recording.request_id]
                self._emit(output)


def _windows(pcm: bytes) -> Iterator[bytes]:
    """Cut the PCM when the first window is asked for: that takes longer than an ear can wait."""
    yield from map(float32_to_int16, split_windows(int16_to_float32(pcm)))
