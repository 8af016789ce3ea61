"""What an ear asks for and tells, and its records of turns that are open or just over."""

from collections import deque
from dataclasses import dataclass, field

from omniduplex.models.local import messages
from omniduplex.models.local.messages import Heard

KEPT_TURNS = 8  # turns in a row that end before the session knows of one: more than ever happen


@dataclass(frozen=True, slots=True)
class Recognise:
    """Recognise this 16 kHz PCM; an `early` one is of a turn that goes on, so speed is all."""

    job: int
    pcm: bytes
    early: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """Tell how likely the turn in this 16 kHz PCM is complete."""

    job: int
    pcm: bytes


@dataclass(frozen=True, slots=True)
class Classify:
    """Tell what kind of sound this is, `frames` after its onset (see `SoundKind`)."""

    job: int
    pcm: bytes
    frames: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Nobody waits for this job any more."""

    job: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Something the session shall know, with what was measured on the way."""

    heard: Heard
    metrics: dict[str, float] = field(default_factory=dict)
    generation: int = 0


Action = Recognise | Judge | Classify | Drop | Tell


def only_plausible(words: str, most: int | None) -> str:
    """The words, or none if they are more than there can be."""
    return words if most is None or len(words.split()) <= most else ""


@dataclass(slots=True)
class PendingWords:
    """A job and its words, once they are known; `stop` is where its audio ends, in samples."""

    stop: int
    job: int = 0
    words: str | None = None
    took_s: float = 0.0
    failure: str = ""
    """Why there are no words and never will be."""
    most_words: int | None = None
    """More words than these are none."""

    def take(self, words: str, took_s: float) -> None:
        """They are known now."""
        self.words, self.took_s = only_plausible(words, self.most_words), took_s


@dataclass(slots=True)
class OpenTurn:
    """An open turn; samples from `start` belong to it, those before `settled_to` are words."""

    start: int
    settled_to: int
    settled: str = ""
    recognition: PendingWords | None = None
    drafted: bool = False

    def transcript(self) -> str:
        """All words known so far."""
        newest = self.recognition.words if self.recognition else None
        return " ".join(words for words in (self.settled, newest) if words)

    def settle(self, recognition: PendingWords, least: int) -> None:
        """Keep the words of the newest recognition for good, if it covers `least` samples."""
        if recognition.stop - self.settled_to >= least:
            self.settled, self.settled_to = self.transcript(), recognition.stop


@dataclass(slots=True)
class EndedTurn:
    """A turn that is over and perhaps waits for its words; what follows waits behind it."""

    turn: OpenTurn
    recognition: PendingWords
    metrics: dict[str, float]
    audio_end_ms: int = 0
    generation: int = 0
    item_id: str | None = None
    seconds: float = 0.0
    heard_from: int = 0
    """Where its audio begins, in samples, with the silence before it."""
    speech: messages.SpeechGrew | None = None
    """How it sounded."""
    late: "tuple[EndedTurn, ...]" = ()
    """Turns that ended before a commit, too late for the client to know."""

    def tell(self) -> Tell:
        """The end, once the words are known."""
        metrics = self.metrics | {messages.RECOGNITION: self.recognition.took_s}
        return Tell(self._heard(), metrics, self.generation)

    def _heard(self) -> Heard:
        if self.recognition.failure:
            return self._unheard(self.recognition.failure)
        known = [ended.turn.transcript() for ended in (*self.late, self)]
        transcript = " ".join(words for words in known if words)
        if self.item_id is not None:
            return messages.CommitHeard(self.item_id, transcript, self.seconds)
        return messages.TurnEnded(self.audio_end_ms, transcript, self.speech)

    def _unheard(self, message: str) -> Heard:
        if self.item_id is not None:
            return messages.CommitUnheard(self.item_id, message)
        return messages.TurnUnheard(self.audio_end_ms, message)


class Generation:
    """The turns that an ear ended since the newest of `number` commits and clears."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self._count = 0
        self._newest: deque[EndedTurn] = deque(maxlen=KEPT_TURNS)

    def ended(self, turn: EndedTurn) -> None:
        """Count a turn."""
        self._count += 1
        self._newest.append(turn)

    def unknown(self, known: int) -> tuple[EndedTurn, ...]:
        """Those after the first `known`."""
        count = self._count - known
        return tuple(self._newest)[-count:] if count > 0 else ()
