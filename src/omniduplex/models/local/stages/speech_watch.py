"""Follows speech that goes on: how much there is, how it sounds, its words before it ends."""

from dataclasses import dataclass

from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE
from omniduplex.models.local.asr import MAX_WORDS_PER_S
from omniduplex.models.local.messages import SpeechGrew
from omniduplex.models.local.sound_kind import MOMENTS, Kinds
from omniduplex.models.local.stages.frame_sound import QUIETEST, SILENT, FrameSound, decibels

FRAME_MS = FRAME_SAMPLES * 1000 // VAD_RATE
# In frames of speech: how often it is told, when its words are first asked for and how often then.
TELL_EVERY = 3
ASK_FIRST = 10
# An utterance that short may be no word at all.
SHORT_FRAMES = 20
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
    kinds: Kinds | None = None
    """What kind of sound it is, as far as that is known."""
    kinds_job: int | None = None
    onset: int = 0
    """Where it begins, in samples."""
    _moments: int = 0
    _frames: int = 0
    _sound: FrameSound = SILENT
    _told: int = 0
    _next_ask: int = ASK_FIRST

    def add(self, sound: FrameSound, start: int) -> None:
        """Take a frame of speech that begins at this sample."""
        if self._frames == 0:
            self.onset = start
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

    def wants_kinds(self, position: int) -> int | None:
        """The moment of `SoundKind` that has come, in frames; one at a time, each once."""
        passed = (position - self.onset) // FRAME_SAMPLES
        moments = [moment for moment in MOMENTS[self._moments :] if moment <= passed]
        if not self.active or self.kinds_job is not None or not moments:
            return None
        self._moments += len(moments)
        return moments[-1]

    def wants_last_kinds(self) -> bool:
        """Whether an utterance that has fallen silent is too short to be a word for certain."""
        if self._moments or self._frames > SHORT_FRAMES:
            return False
        self._moments = len(MOMENTS)
        return True

    def progress(self) -> SpeechGrew:
        """What is known now."""
        sound = self._sound
        return SpeechGrew(
            self._frames * FRAME_MS,
            decibels(sound.power / max(1, self._frames)),
            self.words,
            decibels(sound.bright / max(sound.dull, QUIETEST)) if self._frames else None,
            floor=self.kinds and round(self.kinds.floor, 2),
            tic=self.kinds and round(self.kinds.tic, 2),
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
        self.words = self.kinds = self.kinds_job = None
        self._moments = 0
        self._frames = self._told = 0
        self._sound = SILENT
        self._next_ask = ASK_FIRST
