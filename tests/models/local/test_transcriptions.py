"""Recordings that a listening stage recognises: window by window, and only while wanted."""

from __future__ import annotations

from tests.models.local.manual_executor import ManualExecutor

from omniduplex.audio.pcm import byte_count
from omniduplex.models.local.asr import RATE, Recognition
from omniduplex.models.local.messages import Transcribed, decode_from_listen
from omniduplex.models.local.stages.recognition_queue import RecognitionQueue
from omniduplex.models.local.stages.transcriptions import Transcriptions
from omniduplex.stages.messages import StageOutput


def recording(seconds: float) -> bytes:
    return bytes(byte_count(1000 * seconds, RATE))


Told = tuple[str, str, bool]
"""Request, words, and whether that was all."""


class Desk:
    """Recognises "w1", "w2", ... and keeps what comes out."""

    def __init__(self) -> None:
        self.pool = ManualExecutor()
        self.out: list[StageOutput] = []
        self.windows: list[bytes] = []
        self.broken = False
        self.queue = RecognitionQueue(self.pool)
        self.transcriptions = Transcriptions(self._recognise, self.queue, self.out.append)

    def _recognise(self, pcm: bytes) -> Recognition:
        if self.broken:
            raise OSError("no model")
        self.windows.append(pcm)
        return Recognition(f"w{len(self.windows)}", 0.0, len(pcm) / 2 / RATE)

    def words(self) -> list[Told]:
        told = []
        for output in self.out:
            message = decode_from_listen(output.data)
            assert isinstance(message, Transcribed)
            told.append((output.request_id, message.transcript, output.finished))
        return told


def test_a_short_recording_is_one_window() -> None:
    desk = Desk()
    desk.transcriptions.start("r", 0, recording(2))
    desk.pool.run()

    assert desk.words() == [("r", "w1", True)]
    assert desk.windows == [recording(2)]


def test_a_long_one_is_cut_and_loses_nothing() -> None:
    desk = Desk()
    desk.transcriptions.start("r", 0, recording(70))
    desk.pool.run()

    assert desk.words() == [("r", "w1 w2 w3", True)]
    assert b"".join(desk.windows) == recording(70)


def test_nothing_has_no_words() -> None:
    desk = Desk()
    desk.transcriptions.start("r", 0, b"")
    desk.pool.run()
    assert desk.words() == [("r", "", True)]


def test_recordings_take_turns() -> None:
    desk = Desk()
    desk.transcriptions.start("long", 0, recording(70))
    desk.transcriptions.start("short", 0, recording(2))
    desk.pool.run()
    assert desk.words() == [("short", "w2", True), ("long", "w1 w3 w4", True)]


def test_an_aborted_one_stops_after_its_window() -> None:
    desk = Desk()
    desk.transcriptions.start("r", 0, recording(70))
    desk.transcriptions.start("kept", 0, recording(2))
    desk.transcriptions.abort(("r", "never started"))
    desk.pool.run()

    assert desk.words() == [("kept", "w1", True)]
    desk.transcriptions.start("r2", 0, recording(2))
    desk.transcriptions.close()
    desk.pool.run()
    assert len(desk.out) == 1


def test_one_that_fails_fails_alone() -> None:
    desk = Desk()
    desk.broken = True
    desk.transcriptions.start("r", 3, recording(2))
    desk.pool.run()
    desk.broken = False
    desk.transcriptions.start("next", 0, recording(2))
    desk.pool.run()

    failed, following = desk.out
    assert (failed.request_id, failed.epoch, failed.finished) == ("r", 3, False)
    assert failed.error == "the recording could not be recognised: no model"
    assert following.finished
