"""Speech recognition with Whisper base on CTranslate2, over a context as short as the audio."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from omniduplex.audio.mel import log_mel
from omniduplex.audio.pcm import int16_to_float32

RATE = 16_000
FULL_CONTEXT_SAMPLES = 30 * RATE  # what Whisper was trained on
# Whisper wants to see the speech end; 3 s of zeros cost a fifth of the full 30 s context.
PAD_SAMPLES = 3 * RATE
# A decoder that got stuck is asked once more, with a context that it gets stuck in far less often;
# the full one would cost five times as much, and keep everybody behind it waiting.
RETRY_PAD_SAMPLES = 6 * RATE
# A glimpse at speech that goes on makes do with less; with less still, Whisper repeats itself
# until its tokens are used up, which costs more than it saves.
GLIMPSE_PAD_SAMPLES = 2 * RATE
GLIMPSE_SAMPLES = 4 * RATE
MIN_SAMPLES = RATE // 10
# Above this Whisper invents words for noise: bursts like a cough got 0.53 and more, sentences less
# than 0.25, a word alone up to 0.46.
MAX_NO_SPEECH_PROB = 0.5
# A glimpse ends in the middle of a word, so it looks less like speech. What it says of a word or
# two counts only if they are known for assent or as a command.
MAX_GLIMPSE_NO_SPEECH_PROB = 0.7
# Fast speech has 4 words a second; a decoder caught in a loop has far more. A sentence said again
# in less time is one said once.
MAX_WORDS_PER_S = 6.0
MAX_REPEATED_WORDS_PER_S = 4.5
MAX_TOKEN_REPEATS = 4
LOOP_PHRASE_TOKENS = 8
TOKENS_PER_S = 10
SPARE_S, GLIMPSE_SPARE_S = 2.0, 0.5  # a decoder in a loop shall not hold up those behind it
# Fast speech has 5.5 tokens a second, and two more for each segment. Who wants more is given it
# only if that is no loop.
LIKELY_TOKENS, LIKELY_TOKENS_PER_S = 8, 6
LEAST_REPEATED_TOKENS = 4
TIMESTAMP_S = 0.02  # one step of Whisper's timestamp tokens
MAX_TOKENS = 224  # Whisper's own limit for one window
# So that how a sound begins can be judged while words are recognised.
WORKERS = 2
CUT_FROM_S, CUT_TO_S, CUT_WINDOW_S = 26.0, 29.5, 0.1


class Recognition(msgspec.Struct, frozen=True):
    """What was said (empty: nothing), how likely nobody spoke, and the audio's length in s."""

    text: str
    no_speech_prob: float
    seconds: float


class Recognizer:
    """A Whisper model in `model_dir`; one instance serves all sessions, from any thread.

    Raises:
        ValueError: the model does not know the language.
    """

    def __init__(self, model_dir: Path, threads: int = 1, language: str = "en") -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self._storage_view = ctranslate2.StorageView
        self._model = ctranslate2.models.Whisper(
            str(model_dir),
            device="cpu",
            compute_type="int8",
            intra_threads=threads,
            inter_threads=WORKERS,
        )
        self._tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
        # Without <|notimestamps|>: the closing timestamp lets a short context stop.
        names = ("<|startoftranscript|>", f"<|{language}|>", "<|transcribe|>")
        self._prompt = [self._token(name) for name in names]
        # Token ids go: text, <|endoftext|>, special tokens up to <|notimestamps|>, timestamps.
        self._end = self._token("<|endoftext|>")
        self._first_timestamp = self._token("<|notimestamps|>") + 1

    def _token(self, name: str) -> int:
        token: int | None = self._tokenizer.token_to_id(name)
        if token is None:
            raise ValueError(f"the recognizer has no token {name}")
        return token

    def transcribe(self, pcm16k: bytes) -> Recognition:
        """Recognise 16 kHz PCM of any length."""
        samples = int16_to_float32(pcm16k)
        parts = [self._recognise(window) for window in split_windows(samples)]
        return Recognition(
            text=" ".join(part.text for part in parts if part.text),
            no_speech_prob=min((part.no_speech_prob for part in parts), default=1.0),
            seconds=len(samples) / RATE,
        )

    def glimpse(self, pcm16k: bytes) -> Recognition:
        """Recognise the last 4 s of speech that goes on, fast rather than well."""
        samples = int16_to_float32(pcm16k)[-GLIMPSE_SAMPLES:]
        seconds = len(samples) / RATE
        if len(samples) < MIN_SAMPLES:
            return Recognition("", 1.0, seconds)
        encoded = self._encoded(samples, len(samples) + GLIMPSE_PAD_SAMPLES)
        sequence, no_speech = self._decode(encoded, most_tokens(seconds, GLIMPSE_SPARE_S))
        tokens = self._spoken(sequence, seconds)
        text = self._text(tokens)
        most = MAX_GLIMPSE_NO_SPEECH_PROB if len(text.split()) <= 2 else MAX_NO_SPEECH_PROB
        is_nothing = no_speech > most or looks_looped(tokens, text, seconds)
        return Recognition("" if is_nothing else text, no_speech, seconds)

    def encode(self, pcm16k: bytes, context: int) -> NDArray[np.float32]:
        """What the encoder makes of PCM in a context of so many samples: [20 ms steps, width]."""
        samples = int16_to_float32(pcm16k)
        states: NDArray[np.float32] = np.asarray(self._encoded(samples, context))[0]
        return states

    def _recognise(self, samples: NDArray[np.float32]) -> Recognition:
        seconds = len(samples) / RATE
        if len(samples) < MIN_SAMPLES:
            return Recognition("", 1.0, seconds)
        padded = min(len(samples) + PAD_SAMPLES, FULL_CONTEXT_SAMPLES)
        tokens, no_speech = self._hear(samples, padded)
        if no_speech > MAX_NO_SPEECH_PROB:
            return Recognition("", no_speech, seconds)
        text = self._text(tokens)
        if padded < FULL_CONTEXT_SAMPLES and looks_looped(tokens, text, seconds):
            padded = min(len(samples) + RETRY_PAD_SAMPLES, FULL_CONTEXT_SAMPLES)
            tokens, no_speech = self._hear(samples, padded)
            text = self._text(tokens)
        return Recognition("" if no_speech > MAX_NO_SPEECH_PROB else text, no_speech, seconds)

    def _hear(self, samples: NDArray[np.float32], padded: int) -> tuple[list[int], float]:
        """The tokens of text, heard in so large a context, and the no-speech probability."""
        seconds = len(samples) / RATE
        encoded = self._encoded(samples, padded)
        likely = min(LIKELY_TOKENS + int(LIKELY_TOKENS_PER_S * seconds), MAX_TOKENS)
        sequence, no_speech = self._decode(encoded, likely)
        is_cut = len(sequence) >= likely and no_speech <= MAX_NO_SPEECH_PROB
        if is_cut and not self._is_loop(sequence, seconds):
            sequence, no_speech = self._decode(encoded, most_tokens(seconds, SPARE_S))
        return self._spoken(sequence, seconds), no_speech

    def _decode(self, encoded: Any, most: int) -> tuple[list[int], float]:
        """Decode greedily, so many tokens at most; return them, and the no-speech probability."""
        result: Any = self._model.generate(
            encoded,
            [self._prompt],
            beam_size=1,
            # CTranslate2 halves this: it counts the room for a previous text, which is not given.
            max_length=2 * most,
            return_no_speech_prob=True,
        )[0]
        return result.sequences_ids[0], float(result.no_speech_prob)

    def _is_loop(self, sequence: Sequence[int], seconds: float) -> bool:
        if self._said_once(sequence, seconds):
            return True
        tokens = spoken_tokens(sequence, seconds, self._end, self._first_timestamp)
        return looks_looped(tokens, self._text(tokens), seconds)

    def _spoken(self, sequence: Sequence[int], seconds: float) -> list[int]:
        return self._said_once(sequence, seconds) or spoken_tokens(
            sequence, seconds, self._end, self._first_timestamp
        )

    def _said_once(self, sequence: Sequence[int], seconds: float) -> list[int]:
        """All that was said, if the decoder begins from the start again, as it does in a loop.

        It gives itself away by a time in which nobody could have said so much: that of its first
        segment, or the rest of the audio.
        """
        first, *others = segments(sequence, self._end, self._first_timestamp)
        least_s = len(self._text(first.tokens).split()) / MAX_REPEATED_WORDS_PER_S
        said = list(first.tokens)
        for index, segment in enumerate(others):
            is_hasty = index == 0 and first.seconds < least_s
            is_late = seconds - segment.start < least_s
            if (is_hasty or is_late) and repeats_segment(first.tokens, segment.tokens):
                return said
            said += segment.tokens
        return []

    def _encoded(self, samples: NDArray[np.float32], padded: int) -> Any:
        features = log_mel(np.pad(samples, (0, padded - len(samples))))
        # The encoder halves the frames, so an odd one cannot be placed.
        features = np.ascontiguousarray(features[np.newaxis, :, : padded // 320 * 2])
        return self._model.encode(self._storage_view.from_array(features))

    def _text(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(tokens))
        # One of its tokens ends a question twice.
        return text.replace("?.", "?").strip()


class Segment(NamedTuple):
    """Tokens of text between two timestamps: where the first is, and how far the second, in s."""

    tokens: list[int]
    start: float
    seconds: float


def segments(sequence: Sequence[int], end: int, first_timestamp: int) -> list[Segment]:
    """The segments of a decoded sequence in order, the last as long as there is no end to it."""
    found = []
    tokens: list[int] = []
    start = 0.0
    for token in sequence:
        if token < end:
            tokens.append(token)
        elif token >= first_timestamp:
            at = (token - first_timestamp) * TIMESTAMP_S
            if tokens:
                found.append(Segment(tokens, start, at - start))
            tokens, start = [], at
    return [*found, Segment(tokens, start, math.inf)]


def repeats_segment(segment: Sequence[int], following: Sequence[int]) -> bool:
    """Tell whether what follows a segment is the segment, or as much of it as tells."""
    least = min(len(segment), LEAST_REPEATED_TOKENS)
    return least <= len(following) and [*segment[: len(following)]] == [*following]


def most_tokens(seconds: float, spare_s: float) -> int:
    """More than anyone says in audio of this length."""
    return min(MAX_TOKENS, int(TOKENS_PER_S * (spare_s + seconds)))


def spoken_tokens(
    sequence: Sequence[int], seconds: float, end: int, first_timestamp: int
) -> list[int]:
    """Keep the text tokens (below `end`), less what the decoder dreamt up for the padding."""
    start = 0.0
    tokens = []
    for token in sequence:
        if token >= first_timestamp:
            start = (token - first_timestamp) * TIMESTAMP_S
        elif token < end and start < seconds:
            tokens.append(token)
    return tokens


def looks_looped(tokens: Sequence[int], text: str, seconds: float) -> bool:
    """Tell whether a decoder got stuck: too many words for the time, or a phrase over and over."""
    if len(text.split()) > MAX_WORDS_PER_S * max(seconds, 1.0):
        return True
    return any(
        repeats_phrase(tokens, length) for length in range(1, min(LOOP_PHRASE_TOKENS, len(tokens)))
    )


def repeats_phrase(tokens: Sequence[int], length: int) -> bool:
    """Tell whether some run of `length` tokens follows itself more than the allowed times."""
    same = 0
    for earlier, later in zip(tokens, tokens[length:], strict=False):
        same = same + 1 if earlier == later else 0
        if same >= length * MAX_TOKEN_REPEATS:
            return True
    return False


def split_windows(samples: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """Cut samples into windows that fit the context, each at the quietest place near its end."""
    while len(samples) > FULL_CONTEXT_SAMPLES:
        cut = quietest(samples, int(CUT_FROM_S * RATE), int(CUT_TO_S * RATE))
        yield samples[:cut]
        samples = samples[cut:]
    if len(samples):
        yield samples


def quietest(samples: NDArray[np.float32], start: int, stop: int) -> int:
    """Return the middle of the quietest 100 ms in `samples[start:stop]`."""
    window = int(CUT_WINDOW_S * RATE)
    count = (stop - start) // window
    frames = samples[start : start + count * window].reshape(count, window)
    return start + int(np.square(frames).sum(axis=1).argmin()) * window + window // 2
