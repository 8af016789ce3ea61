"""The ear of one session: speech probabilities and recognised words in, decisions on turns out.

Pure: it runs no model and reads no clock. What it wants computed it asks for as an action; the
result comes back under the action's job number, or never, when it was dropped.
"""

from omniduplex.audio.turn_detection import (
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    SpeechStopped,
    TurnDetectionConfig,
    TurnDetector,
)
from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE
from omniduplex.models.local import messages
from omniduplex.models.local.end_of_turn import WINDOW_SAMPLES
from omniduplex.models.local.messages import EarSettings, Heard
from omniduplex.models.local.sound_kind import LEAD_FRAMES, MOMENTS, Kinds, samples_to_hear
from omniduplex.models.local.stages.frame_sound import frame_sound
from omniduplex.models.local.stages.held_audio import HeldAudio
from omniduplex.models.local.stages.outbox import Outbox
from omniduplex.models.local.stages.patience import OVERLAP_HOLD_MS, Patience, hold_ms
from omniduplex.models.local.stages.speech_watch import SpeechWatch
from omniduplex.models.local.stages.turns import (
    Action,
    Classify,
    EndedTurn,
    Generation,
    Judge,
    OpenTurn,
    PendingWords,
    Recognise,
    only_plausible,
)

SAMPLES_PER_MS = VAD_RATE // 1000
FRAME_MS = FRAME_SAMPLES // SAMPLES_PER_MS
UNIT_MS = 1000
# Silence after which the words are recognised: in speech that goes on, one such gap comes in 6 s.
PAUSE_MS = 64
# Over an answer a word is worth more than the moment: a hum has gaps as well.
OVERLAP_PAUSE_MS = 96
# Silence after which the turn's sound is judged.
JUDGE_MS = 96
# A first consonant is often too quiet for the detector: audio kept before the padded start.
PRE_ROLL_MS = 200
MAX_HELD_MS = 300_000
# A pause this far into a turn settles the words before it, so that a long turn ends as fast as a
# short one.
SETTLE_MS = 12_000
# A commit is recognised from half a second before its first to half a second after its last
# frame that may be speech; below this probability a frame is not (0.15 under the usual threshold).
MAYBE_SPEECH = 0.35
COMMIT_MARGIN_MS = 500


class Ear:
    """Finds the turns in one stream of 16 kHz audio and asks for their words.

    Feed it with `append`; for each frame that `next_frame` gives, `push` its speech probability.
    Every method that returns actions returns them in the order in which they count.
    """

    def __init__(self, settings: EarSettings) -> None:
        self._audio = HeldAudio()
        self._frames = 0
        self._floor = 0  # audio before it belongs to a turn that is over
        self._waiting: dict[int, PendingWords] = {}
        self._outbox = Outbox()
        self._turn: OpenTurn | None = None
        self._maybe_speech: tuple[int, int] | None = None
        self._last_speech = 0
        self._next_settings: EarSettings | None = None
        self._watch = SpeechWatch()
        self._patience = Patience()
        self._generation = Generation()
        self._use(settings)

    def append(self, pcm: bytes) -> None:
        """Take newly heard audio, whole int16 samples."""
        self._audio.append(pcm)

    def next_frame(self) -> bytes | None:
        """The next 32 ms that need a speech probability, or None while they are not whole."""
        start = self._frames * FRAME_SAMPLES
        if start + FRAME_SAMPLES > self._audio.end:
            return None
        return self._audio.read(start, start + FRAME_SAMPLES)

    def push(self, probability: float, arrived: float) -> list[Action]:
        """Move on by the frame given last; `arrived` is when its audio reached us, in s."""
        start, self._frames = self._position, self._frames + 1
        if probability >= MAYBE_SPEECH:
            first = self._maybe_speech[0] if self._maybe_speech else start
            self._maybe_speech = (first, self._position)
        is_speech = probability >= self._settings.threshold
        if is_speech:
            self._last_speech = self._position
            self._watch.add(frame_sound(self._audio.read(start, self._position)), start)
        elif self._turn is None:
            self._watch.forget()
        if self._settings.finds_turns:
            self._find_turns(probability, arrived)
        if self._turn and is_speech:
            self._follow_speech(self._turn)
        elif self._turn:
            self._follow_silence(self._turn)
        self._forget()
        return self._outbox.flush()

    def configure(self, settings: EarSettings) -> list[Action]:
        """Listen by these settings, from the end of the open turn on."""
        if self._turn and settings.finds_turns:
            self._next_settings = settings
            return []
        self._next_settings = None
        if settings != self._settings:
            self._abandon_turn()
            self._use(settings)
        return self._outbox.flush()

    def commit(self, item_id: str, generation: int = 0, turns_known: int = 0) -> list[Action]:
        """End the turn here, because the client says so; see `CommitInput` for the counts."""
        stop = self._audio.end
        late = self._generation.unknown(turns_known)
        heard_from = late[0].heard_from if late else self._floor
        seconds = (stop - heard_from) / VAD_RATE
        turn, recognition = self._committed(stop)
        self._generation = Generation(generation)
        self._outbox.end(
            EndedTurn(
                turn,
                recognition,
                {},
                generation=generation,
                item_id=item_id,
                seconds=seconds,
                late=late,
            )
        )
        self._detector.reset()
        self._begin_anew(stop)
        return self._outbox.flush()

    def _committed(self, stop: int) -> tuple[OpenTurn, PendingWords]:
        """The turn that a commit ends; without anything like speech it has no words."""
        turn, self._turn = self._turn, None
        span = self._maybe_speech
        if span is None:
            return OpenTurn(stop, stop), PendingWords(stop, words="")
        margin = COMMIT_MARGIN_MS * SAMPLES_PER_MS
        turn = turn or self._turn_from(max(self._floor, span[0] - margin))
        return turn, turn.recognition or self._recognise(turn, min(stop, span[1] + margin))

    def clear(self, generation: int = 0) -> list[Action]:
        """Forget the open turn and all audio so far; the clock runs on."""
        self._generation = Generation(generation)
        self._abandon_turn()
        self._detector.reset()
        self._begin_anew(self._audio.end)
        return self._outbox.flush()

    def watch(self, active: bool) -> list[Action]:
        """Tell of speech while it goes on, that of the open turn included; or do so no more."""
        self._watch.active = active
        if not active:
            self._outbox.drop(self._watch.drop_job())
        elif self._turn and self._watch.is_due():
            self._tell(self._watch.progress())
        if active:
            self._outbox.drop(self._patience.forget())
        self._detector.set_hold(self._overlap_hold_ms)
        return self._outbox.flush()

    def recognised(self, job: int, words: str, took_s: float) -> list[Action]:
        """Take the words of a recognition that took this many seconds."""
        if job == self._watch.job:
            self._watch.job = None
            words = only_plausible(words, self._watch.most_words())
            self._take_words(" ".join(part for part in (self._settled(), words) if part))
            return self._outbox.flush()
        recognition = self._waiting.pop(job, None)
        if recognition is None:
            return []
        recognition.take(words, took_s)
        turn = self._turn
        if turn and turn.recognition is recognition:
            self._take_words(turn.transcript())
            if turn.transcript():
                turn.drafted = True
                draft = messages.TurnDrafted(turn.transcript())
                self._tell(draft, {messages.RECOGNITION: took_s})
        return self._outbox.flush()

    def unrecognised(self, job: int, message: str) -> list[Action]:
        """Take it that a recognition failed: the turn has no words, unless it goes on."""
        if job == self._watch.job:
            self._watch.job = None
        recognition = self._waiting.pop(job, None)
        if recognition is not None:
            recognition.words, recognition.failure = "", message
        return self._outbox.flush()

    def classified(self, job: int, kinds: Kinds) -> list[Action]:
        """Take what kind of sound an utterance is, by its beginning."""
        watch = self._watch
        if job == watch.kinds_job:
            watch.kinds_job, watch.kinds = None, kinds
            if watch.active:
                self._tell(watch.progress())
        return self._outbox.flush()

    def judged(self, job: int, probability: float, took_s: float) -> None:
        """Take the verdict whether the turn sounds complete; it sets how long to wait for more."""
        if self._turn and self._patience.job == job:
            self._patience.takes(probability, took_s)
            self._detector.set_hold(hold_ms(self._settings, probability))

    @property
    def _position(self) -> int:
        return self._frames * FRAME_SAMPLES

    @property
    def _overlap_hold_ms(self) -> int:
        hold = self._settings.hold_ms
        return min(hold, OVERLAP_HOLD_MS) if self._watch.active else hold

    def _use(self, settings: EarSettings) -> None:
        self._settings = settings
        self._offset_ms = self._frames * FRAME_MS
        self._detector = TurnDetector(
            TurnDetectionConfig(
                threshold=settings.threshold,
                prefix_padding_ms=settings.prefix_padding_ms,
                silence_duration_ms=settings.hold_ms,
                min_speech_duration_ms=settings.min_speech_duration_ms,
                pause_ms=PAUSE_MS,
            ),
            frame_ms=FRAME_MS,
        )

    def _find_turns(self, probability: float, arrived: float) -> None:
        for signal in self._detector.push(probability):
            if isinstance(signal, SpeechStarted):
                self._start_turn(self._offset_ms + signal.audio_start_ms)
            elif self._turn is not None:
                self._follow_turn(self._turn, signal, arrived)
        units = self._frames * FRAME_MS // UNIT_MS
        is_unit_end = units > (self._frames - 1) * FRAME_MS // UNIT_MS
        if is_unit_end and self._turn is None and self._outbox.empty:
            self._tell(messages.KeptListening())

    def _follow_turn(
        self, turn: OpenTurn, signal: SpeechPaused | SpeechResumed | SpeechStopped, arrived: float
    ) -> None:
        match signal:
            case SpeechPaused():
                pass  # silence is followed frame by frame
            case SpeechResumed():
                self._resume_turn(turn)
            case SpeechStopped(audio_end_ms):
                self._end_turn(turn, self._offset_ms + audio_end_ms, arrived)

    def _turn_from(self, start: int) -> OpenTurn:
        start = max(start, self._audio.start)
        return OpenTurn(start, start)

    def _start_turn(self, audio_start_ms: int) -> None:
        start = (audio_start_ms - PRE_ROLL_MS) * SAMPLES_PER_MS
        self._turn = self._turn_from(max(self._floor, start))
        self._tell(messages.SpeechBegan(audio_start_ms))

    def _follow_speech(self, turn: OpenTurn) -> None:
        watch = self._watch
        if watch.is_due():
            self._tell(watch.progress())
        moment = watch.wants_kinds(self._position)
        if moment is not None:
            self._classify(moment)
        if watch.wants_words():
            watch.job = self._outbox.new_job()
            pcm = self._audio.read(turn.settled_to, self._position)
            self._outbox.ask(Recognise(watch.job, pcm, early=True))

    def _classify(self, frames: int) -> None:
        self._outbox.drop(self._watch.kinds_job)
        job = self._watch.kinds_job = self._outbox.new_job()
        start = self._watch.onset - LEAD_FRAMES * FRAME_SAMPLES
        pcm = self._audio.read_padded(start, start + samples_to_hear(frames))
        self._outbox.ask(Classify(job, pcm, frames))

    def _follow_silence(self, turn: OpenTurn) -> None:
        """Have the words recognised; judge the sound, and again when there is more silence."""
        silence_ms = self._detector.silence_ms
        pause_ms = OVERLAP_PAUSE_MS if self._watch.active else PAUSE_MS
        if turn.recognition is None and silence_ms >= pause_ms:
            self._pause_turn(turn)
        if silence_ms < JUDGE_MS or self._settings.complete_hold_ms is None:
            return
        if self._watch.active or not self._patience.wants_judgement(silence_ms):
            return
        job = self._outbox.new_job()
        self._patience.asks(job, silence_ms)
        start = max(turn.start, self._position - WINDOW_SAMPLES)
        self._outbox.ask(Judge(job, self._audio.read(start, self._position)))

    def _take_words(self, words: str) -> None:
        if self._watch.active:
            self._watch.words = words
            self._tell(self._watch.progress())

    def _settled(self) -> str:
        return self._turn.settled if self._turn else ""

    def _tell(self, heard: Heard, metrics: dict[str, float] | None = None) -> None:
        self._outbox.tell(heard, self._generation.number, metrics)

    def _pause_turn(self, turn: OpenTurn) -> None:
        self._outbox.drop(self._watch.drop_job())
        turn.recognition = self._recognise(turn, self._position)
        if self._watch.wants_last_kinds():
            self._classify(MOMENTS[-1])
        self._detector.set_hold(self._overlap_hold_ms)

    def _resume_turn(self, turn: OpenTurn) -> None:
        recognition = turn.recognition
        if recognition and recognition.words is not None and not recognition.failure:
            turn.settle(recognition, SETTLE_MS * SAMPLES_PER_MS)
        self._drop_jobs(turn)
        turn.recognition = None
        if turn.drafted:
            turn.drafted = False
            self._tell(messages.SpeechWentOn())

    def _end_turn(self, turn: OpenTurn, audio_end_ms: int, arrived: float) -> None:
        self._turn = None
        metrics = {
            messages.HOLD: (self._position - self._last_speech) / VAD_RATE,
            messages.AT_TURN_AUDIO: arrived,
        }
        if self._patience.took_s is not None:
            metrics[messages.END_OF_TURN] = self._patience.took_s
        self._outbox.drop(self._patience.forget())
        recognition = turn.recognition or self._recognise(turn, self._position)
        ended = EndedTurn(
            turn,
            recognition,
            metrics,
            audio_end_ms,
            generation=self._generation.number,
            heard_from=self._floor,
            speech=self._watch.progress(),
        )
        self._outbox.end(ended)
        self._generation.ended(ended)
        self._begin_anew(self._position)
        if self._next_settings:
            self._use(self._next_settings)
            self._next_settings = None

    def _recognise(self, turn: OpenTurn, stop: int) -> PendingWords:
        job = self._outbox.new_job()
        most_words = self._watch.most_words() if turn.settled_to == turn.start else None
        recognition = PendingWords(stop, job, most_words=most_words)
        self._waiting[job] = recognition
        turn.recognition = recognition
        self._outbox.ask(Recognise(job, self._audio.read(turn.settled_to, stop)))
        return recognition

    def _drop_jobs(self, turn: OpenTurn) -> None:
        recognition = turn.recognition
        if recognition and self._waiting.pop(recognition.job, None):
            self._outbox.drop(recognition.job)
        self._outbox.drop(self._patience.forget())

    def _abandon_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn:
            self._drop_jobs(turn)

    def _begin_anew(self, floor: int) -> None:
        self._floor = floor
        self._maybe_speech = None
        self._outbox.drop(self._watch.drop_job())
        self._watch.forget()

    def _forget(self) -> None:
        oldest = self._position - MAX_HELD_MS * SAMPLES_PER_MS
        if self._turn:
            oldest = max(oldest, self._turn.start)
        elif self._settings.finds_turns:
            onset_ms = max(self._settings.min_speech_duration_ms, FRAME_MS) + FRAME_MS
            kept_ms = self._settings.prefix_padding_ms + PRE_ROLL_MS + onset_ms
            oldest = max(oldest, self._position - kept_ms * SAMPLES_PER_MS)
        self._audio.forget_before(max(oldest, min(self._floor, self._position)))
