import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.e2e.hearing import understood

from omniduplex.audio.resample import StreamResampler
from omniduplex.models.local.asr import RATE, Recognizer
from omniduplex.models.local.end_of_turn import EndOfTurn
from omniduplex.models.local.voice import PEAK, Voice, limit_peak, trim_silence

SENTENCES = (
    "Please set a timer for ten minutes.",
    "Sure, I can help you with that.",
    "What is the weather like in London today?",
)


@given(st.floats(0.01, 4.0))
def test_loud_clauses_are_scaled_and_quiet_ones_left(peak: float) -> None:
    samples = np.array([0.0, -peak, peak / 2], np.float32)
    limited = limit_peak(samples)

    assert np.abs(limited).max() <= PEAK + 1e-6
    assert np.allclose(limited, samples * min(1.0, PEAK / peak), atol=1e-6)


def test_silence_around_the_sound_is_cut_to_30_and_120_ms() -> None:
    rate = 1_000
    samples = np.concatenate([np.zeros(500), np.ones(100), np.zeros(500)]).astype(np.float32)

    assert len(trim_silence(samples, rate)) == 30 + 100 + 120
    assert len(trim_silence(np.zeros(500, np.float32), rate)) == 0
    assert len(trim_silence(np.ones(100, np.float32), rate)) == 100


def at_16k(voice: Voice, text: str) -> bytes:
    return StreamResampler(voice.rate, RATE).process(voice.say(text), last=True)


@pytest.mark.local
def test_what_the_voice_says_is_recognised(voice: Voice, recognizer: Recognizer) -> None:
    heard = [recognizer.transcribe(at_16k(voice, sentence)).text for sentence in SENTENCES]
    assert understood(" ".join(SENTENCES), " ".join(heard)), heard


@pytest.mark.local
def test_speech_beyond_the_context_is_recognised_whole(
    voice: Voice, recognizer: Recognizer
) -> None:
    clip = b"".join(at_16k(voice, sentence) for sentence in SENTENCES)
    times = 31 * 2 * RATE // len(clip) + 1
    heard = recognizer.transcribe(clip * times)

    assert heard.seconds > 30.0
    assert understood(" ".join(SENTENCES * times), heard.text)


@pytest.mark.local
def test_the_voice_can_be_faster_and_slower(voice: Voice) -> None:
    usual, fast, slow = (len(voice.say(SENTENCES[0], speed)) for speed in (1.0, 2.0, 0.5))
    # How long it speaks is a little random: these are 0.65 and 1.7.
    assert 0.3 * usual < fast < 0.85 * usual
    assert 1.3 * usual < slow < 3.0 * usual


@pytest.mark.local
def test_text_without_words_is_silent(voice: Voice) -> None:
    assert voice.say("") == voice.say(" ... !") == b""


@pytest.mark.local
def test_first_sound_comes_at_once(voice: Voice) -> None:
    samples = np.abs(np.frombuffer(voice.say("Hello there!"), np.int16).astype(np.int32))
    loud = np.flatnonzero(samples > 0.02 * samples.max())

    assert loud[0] <= 0.050 * voice.rate
    assert len(samples) - loud[-1] <= 0.130 * voice.rate


@pytest.mark.local
def test_voice_serves_several_threads(voice: Voice) -> None:
    spoken: list[bytes] = []
    threads = [
        threading.Thread(target=lambda text=text: spoken.append(voice.say(text)))
        for text in SENTENCES
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(spoken) == len(SENTENCES)
    assert all(len(pcm) > voice.rate for pcm in spoken)


@pytest.mark.local
def test_a_whole_sentence_sounds_more_complete_than_half_of_it(
    voice: Voice, smart_turn: Path
) -> None:
    end_of_turn = EndOfTurn(smart_turn)
    whole = [at_16k(voice, sentence) for sentence in SENTENCES * 2]
    complete = [end_of_turn.probability(pcm) for pcm in whole]
    half = [end_of_turn.probability(pcm[: len(pcm) // 4 * 2]) for pcm in whole]

    assert all(0.0 <= probability <= 1.0 for probability in complete + half)
    # It is 0.5 as a rule, and 0.2 for some takes of three sentences.
    assert np.mean(complete) > np.mean(half) + 0.1


@pytest.mark.local
def test_only_the_last_eight_seconds_of_a_turn_count(voice: Voice, smart_turn: Path) -> None:
    end_of_turn = EndOfTurn(smart_turn)
    recent = (at_16k(voice, SENTENCES[2]) * 6)[-8 * 2 * RATE :]

    assert end_of_turn.probability(b"\x10\x20" * 5 * RATE + recent) == pytest.approx(
        end_of_turn.probability(recent)
    )
    assert 0.0 <= end_of_turn.probability(b"") <= 1.0
