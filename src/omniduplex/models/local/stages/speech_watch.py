"""Follows speech that goes on: how much there is, how it sounds, its words before it ends."""

from dataclasses import dataclass

from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE
from omniduplex.models.local.asr import MAX_WORDS_PER_S
from omniduplex.models.local.messages import SpeechGrew
from omniduplex.models.local.stages.frame_sound import QUIETEST, SILENT, FrameSound, decibels

FRAME_MS = FRAME_SAMPLES * 1000 // VAD_RATE
# In frames of speech: how often it is told, when its words are first asked for and how often then.
TELL_EVERY = 3
ASK_FIRST = 10
ASK_EVERY = 13
# Who has talked over an answer for so long is judged; reading on would only cost the CPU.
ASK_LAST = 96
SHORT_S = 1.0
LEAST_WORDS = 2


@dataclass(slots=True)
class SpeechWatch:
    """Counts the frames of one utterance that are speech; while `active` it has reports to make."""

    active: bool = False
    job: int | None = None
    """The recognition of the utterance so far that is under way."""
    words: str | None = None
    _frames: int = 0
    _sound: FrameSound = SILENT
    _told: int = 0
    _next_ask: int = ASK_FIRST

    def add(self, sound: FrameSound) -> None:
        """Take a frame of speech."""
        self._frames += 1
        self._sound = self._sound.plus(sound)

    def is_due(self) -> bool:
        """Whether there is enough new speech to tell of; asked once, it counts as told."""
        if not self.active or self._frames - self._told < TELL_EVERY:
            return False
        self._told = self._frames
        return True

    def wants_words(self) -> bool:
        """Whether it is time to recognise what was said so far; one recognition at a time."""
        if not self.active or self.job is not None or self._frames > ASK_LAST:
            return False
        if self._frames < self._next_ask:
            return False
        self._next_ask = self._frames + ASK_EVERY
        return True

    def progress(self) -> SpeechGrew:
        """What is known now."""
        sound = self._sound
        return SpeechGrew(
            self._frames * FRAME_MS,
            decibels(sound.power / max(1, self._frames)),
            self.words,
            decibels(sound.bright / max(sound.dull, QUIETEST)) if self._frames else None,
        )

    def most_words(self) -> int | None:
        """How many words so short an utterance can have; a recogniser hears more in a cough.

        None for a long one: it has sounds that the detector does not count, so nothing is sure.
        """
        seconds = self._frames * FRAME_MS / 1000
        if not 0 < seconds < SHORT_S:
            return None
        return max(LEAST_WORDS, 1 + int(seconds * MAX_WORDS_PER_S))

    def drop_job(self) -> int | None:
        """Want the words of the recognition under way no more; its number, if there is one."""
        job, self.job = self.job, None
        return job

    def forget(self) -> None:
        """Begin a new utterance."""
        self.words = None
        self._frames = self._told = 0
        self._sound = SILENT
        self._next_ask = ASK_FIRST
