"""Turn detection: speech probabilities of a stream in, starts and ends of utterances out.

Time is the audio clock alone: the sum of the frames pushed so far.
"""

from dataclasses import dataclass

# A frame this far below the threshold counts as silence; the band between is undecided.
_HYSTERESIS = 0.15
_MIN_SILENCE_THRESHOLD = 0.01
_MIN_SPEECH_FLOOR_MS = 32


@dataclass(frozen=True, slots=True)
class TurnDetectionConfig:
    """Settings of one detector; the wire values are checked where they are decoded."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    min_speech_duration_ms: int = 96
    pause_ms: int = 160
    """Silence after which an utterance may have ended (SpeechPaused); 0 disables the signal."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """An utterance began; its start includes the prefix padding."""

    audio_start_ms: int


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """Speech fell silent: the utterance ends here unless it resumes within the hold."""

    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """Speech went on after SpeechPaused, in the same utterance."""

    audio_start_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The utterance ended; its end includes the trailing silence."""

    audio_end_ms: int


TurnSignal = SpeechStarted | SpeechPaused | SpeechResumed | SpeechStopped


class TurnDetector:
    """Finds utterances in one stream, any number of them, one frame at a time.

    Speech is a frame at `threshold` or above, silence one below `threshold - 0.15` (0.01 at least).
    Consecutive speech of `min_speech_duration_ms` (32 at least) starts an utterance. Silence frames
    add up to the hold that ends it; a speech frame clears the sum, frames between leave it alone.
    """

    def __init__(self, config: TurnDetectionConfig, frame_ms: float = 32.0) -> None:
        self._config = config
        self._frame_ms = frame_ms
        self._silence_below = max(config.threshold - _HYSTERESIS, _MIN_SILENCE_THRESHOLD)
        self._min_speech_ms = max(config.min_speech_duration_ms, _MIN_SPEECH_FLOOR_MS)
        self._frames = 0
        self._earliest_start_ms = 0.0
        self._begin_listening()

    @property
    def position_ms(self) -> float:
        """Audio clock: the end of the last frame pushed."""
        return self._frames * self._frame_ms

    @property
    def speaking(self) -> bool:
        """Whether an utterance has started and not stopped."""
        return self._speaking

    @property
    def silence_ms(self) -> float:
        """Silence added up in the current pause of an utterance; 0 outside of one."""
        return self._silent_frames * self._frame_ms

    def push(self, probability: float) -> list[TurnSignal]:
        """Move the clock by one frame of this speech probability and tell what it decided."""
        self._frames += 1
        if probability >= self._config.threshold:
            return self._hear_speech()
        if not self._speaking:
            self._onset_frames = 0
            return []
        if probability < self._silence_below:
            return self._hear_silence()
        return []

    def set_hold(self, silence_ms: int) -> None:
        """Silence that ends the utterance in the current pause, judged at the next silent frame.

        The next speech frame brings the configured hold back. Outside a pause this does nothing: a
        verdict that comes after speech resumed is about a pause that is over.
        """
        if self._silent_frames:
            self._hold_ms = silence_ms

    def reset(self) -> None:
        """Forget the utterance without a signal; the audio clock runs on."""
        self._earliest_start_ms = self.position_ms
        self._begin_listening()

    def _begin_listening(self) -> None:
        self._speaking = False
        self._onset_frames = 0
        self._end_pause()

    def _end_pause(self) -> None:
        self._paused = False
        self._silent_frames = 0
        self._hold_ms = self._config.silence_duration_ms

    def _hear_speech(self) -> list[TurnSignal]:
        if self._speaking:
            resumed = self._paused
            self._end_pause()
            return [SpeechResumed(round(self.position_ms - self._frame_ms))] if resumed else []
        self._onset_frames += 1
        onset_ms = self._onset_frames * self._frame_ms
        if onset_ms < self._min_speech_ms:
            return []
        self._speaking = True
        padded_ms = self.position_ms - onset_ms - self._config.prefix_padding_ms
        return [SpeechStarted(round(max(padded_ms, self._earliest_start_ms)))]

    def _hear_silence(self) -> list[TurnSignal]:
        self._silent_frames += 1
        if self.silence_ms >= self._hold_ms:
            self.reset()
            return [SpeechStopped(round(self.position_ms))]
        if not self._paused and 0 < self._config.pause_ms <= self.silence_ms:
            self._paused = True
            return [SpeechPaused(round(self.position_ms))]
        return []
