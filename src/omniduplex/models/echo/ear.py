"""The ear of the echo model: it finds utterances by loudness and describes their pitch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import msgspec
import numpy as np

from omniduplex.audio import pcm
from omniduplex.models.echo.messages import (
    INPUT_RATE_HZ,
    UNIT_MS,
    Listen,
    SpeechGrew,
    SpeechHeard,
    TurnHeard,
)

SPEECH_RMS = 0.01
# The pitch is that of the first six loud units, as many as fit the window of the transform, which
# tells frequencies 2 Hz apart; a longer window costs more and tells nothing new after rounding.
_PITCH_UNITS = 6
_PITCH_WINDOW = 8192
_PITCH_STEP_HZ = 10
_KEPT_TURNS = 8  # turns in a row that end before the session knows of one: more than ever happen

OfTurn = SpeechHeard | SpeechGrew | TurnHeard


class Turn(msgspec.Struct, frozen=True):
    """A turn as the ear describes it."""

    transcript: str = ""
    speech_ms: int = 0


class Utterance:
    """Speech that goes on; positions are in samples since the session began."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._loud_units: list[bytes] = []
        self._units = 0
        self._energy = 0.0

    def add(self, unit: bytes, level: float, end: int) -> None:
        """Take a loud unit of RMS `level` that ends at `end`."""
        self.end = end
        self._units += 1
        self._energy += level * level
        if len(self._loud_units) < _PITCH_UNITS:
            self._loud_units.append(unit)

    @property
    def loud_ms(self) -> int:
        """How much of it is loud."""
        return self._units * UNIT_MS

    @property
    def level_dbfs(self) -> float:
        """RMS of its loud units."""
        return round(10 * math.log10(self._energy / self._units), 1)

    def describe(self) -> Turn:
        """Its pitch and its length, short pauses included."""
        samples = pcm.int16_to_float32(b"".join(self._loud_units))
        spectrum = np.abs(np.fft.rfft(samples, _PITCH_WINDOW))
        spectrum[0] = 0.0
        hz = int(spectrum.argmax()) * INPUT_RATE_HZ / _PITCH_WINDOW
        rounded_hz = round(hz / _PITCH_STEP_HZ) * _PITCH_STEP_HZ
        speech_ms = ms_of(self.end - self.start)
        return Turn(f"tone {rounded_hz} Hz {speech_ms / 1000:.1f} s", speech_ms)


class Ear:
    """Finds utterances by the level of units; a loud unit begins one, enough quiet ends it.

    What it tells of a turn carries the `generation`: the commits and clears before it.
    """

    def __init__(self, early_words: bool = False) -> None:
        self.settings = Listen(silence_ms=0, ends_turns=False)
        self.position = 0
        """The audio clock: samples heard."""
        self.generation = 0
        self.watched = False
        """Whether to tell of speech while it goes on."""
        self.last_turn = Turn()
        self._early_words = early_words
        self._utterance: Utterance | None = None
        self._sealed = 0  # samples that belong to what was committed, cleared or ended
        self._ended = 0  # turns of this generation
        self._newest: deque[Turn] = deque(maxlen=_KEPT_TURNS)

    def hear(self, unit: bytes, force_listen: bool) -> list[OfTurn]:
        """Take one unit and tell what it decided."""
        start = self._advance(unit)
        level = pcm.rms(unit)
        if level >= SPEECH_RMS:
            return list(self._hear_speech(unit, level, start, force_listen))
        return list(self._hear_quiet())

    def commit(self, rest: bytes, force_listen: bool) -> Turn:
        """End the turn after `rest`, audio short of a unit; an empty turn when none is open."""
        start = self._advance(rest)
        level = pcm.rms(rest)
        if level >= SPEECH_RMS:
            self._take(rest, level, start, force_listen)
        self._sealed = self.position
        return self._end_turn(self._utterance) if self._utterance else Turn()

    def with_unknown(self, turn: Turn, turns_known: int) -> Turn:
        """A committed turn with those before it that ended too late for the client to know."""
        unknown = self._ended - turns_known
        turns = [*list(self._newest)[-unknown:], turn] if unknown > 0 else [turn]
        self._begin_generation()
        if len(turns) > 1:
            words = " ".join(part.transcript for part in turns if part.transcript)
            self.last_turn = Turn(words, sum(part.speech_ms for part in turns))
            return self.last_turn
        return turn

    def clear(self, rest: bytes) -> None:
        """Forget the open utterance and `rest`, audio short of a unit; the clock runs on."""
        self._advance(rest)
        self._begin_generation()
        self._utterance = None
        self._sealed = self.position

    def _begin_generation(self) -> None:
        self.generation += 1
        self._ended = 0
        self._newest.clear()

    def _advance(self, audio: bytes) -> int:
        start = self.position
        self.position += len(audio) // pcm.SAMPLE_BYTES
        return start

    def _take(self, audio: bytes, level: float, start: int, force_listen: bool) -> None:
        if self._utterance is None:
            if force_listen:
                return
            self._utterance = Utterance(start)
        self._utterance.add(audio, level, self.position)

    def _hear_speech(
        self, unit: bytes, level: float, start: int, force_listen: bool
    ) -> Iterator[OfTurn]:
        was_open = self._utterance is not None
        self._take(unit, level, start, force_listen)
        utterance = self._utterance
        # Where commits end turns, nobody waits to hear when one began.
        if utterance is None or not self.settings.ends_turns:
            return
        if not was_open:
            padding = self.settings.padding_ms * INPUT_RATE_HZ // 1000
            yield SpeechHeard(ms_of(max(self._sealed, start - padding)), self.generation)
        if self.watched:
            words = utterance.describe().transcript if self._early_words else None
            yield SpeechGrew(utterance.loud_ms, utterance.level_dbfs, words, self.generation)

    def _hear_quiet(self) -> Iterator[OfTurn]:
        utterance = self._utterance
        if utterance is None or not self.settings.ends_turns:
            return
        if ms_of(self.position - utterance.end) < self.settings.silence_ms:
            return
        turn = self._end_turn(utterance)
        self._newest.append(turn)
        self._ended += 1
        yield TurnHeard(ms_of(self.position), turn.transcript, self.generation)

    def _end_turn(self, utterance: Utterance) -> Turn:
        self._utterance = None
        self._sealed = self.position
        self.last_turn = utterance.describe()
        return self.last_turn


def ms_of(samples: int) -> int:
    """How long so many samples of input last."""
    return samples * 1000 // INPUT_RATE_HZ
