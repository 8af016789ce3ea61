import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.audio.turn_detection import (
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    SpeechStopped,
    TurnDetectionConfig,
    TurnDetector,
    TurnSignal,
)

SPEECH, BAND, SILENCE = 0.9, 0.4, 0.05

# Without the pause signal a test reads as starts and stops alone.
NO_PAUSE = TurnDetectionConfig(pause_ms=0)


def hear(detector: TurnDetector, *runs: tuple[float, int]) -> list[TurnSignal]:
    """Push runs of (probability, frames) and collect the signals."""
    signals: list[TurnSignal] = []
    for probability, frames in runs:
        for _ in range(frames):
            signals += detector.push(probability)
    return signals


def milliseconds(signal: TurnSignal) -> int:
    match signal:
        case SpeechStarted(ms) | SpeechResumed(ms) | SpeechPaused(ms) | SpeechStopped(ms):
            return ms


def edges(signals: Iterable[TurnSignal]) -> list[SpeechStarted | SpeechStopped]:
    return [s for s in signals if isinstance(s, SpeechStarted | SpeechStopped)]


def test_one_utterance_has_a_start_and_a_stop() -> None:
    """960 ms silence, 960 ms speech, then the 16th silent frame passes 500 ms."""
    detector = TurnDetector(NO_PAUSE)

    signals = hear(detector, (SILENCE, 30), (SPEECH, 30), (SILENCE, 30))

    assert signals == [SpeechStarted(960 - 300), SpeechStopped(1920 + 16 * 32)]


def test_speech_starts_with_the_frame_that_reaches_the_minimum() -> None:
    detector = TurnDetector(NO_PAUSE)

    assert hear(detector, (SILENCE, 20), (SPEECH, 2)) == []
    assert not detector.speaking
    assert detector.push(SPEECH) == [SpeechStarted(340)]
    assert detector.speaking


def test_a_short_burst_is_no_speech() -> None:
    assert hear(TurnDetector(NO_PAUSE), *[(SPEECH, 2), (SILENCE, 1)] * 50) == []


@pytest.mark.parametrize("between", [SILENCE, BAND, 0.499])
def test_onset_frames_must_be_consecutive(between: float) -> None:
    assert hear(TurnDetector(NO_PAUSE), (SPEECH, 2), (between, 1), (SPEECH, 2)) == []


@pytest.mark.parametrize("minimum", [0, 10, 32])
def test_one_frame_is_the_least_speech(minimum: int) -> None:
    config = TurnDetectionConfig(min_speech_duration_ms=minimum)

    assert TurnDetector(config).push(SPEECH) == [SpeechStarted(0)]
    assert TurnDetector(config, frame_ms=16.0).push(SPEECH) == []


def test_a_frame_on_the_threshold_is_speech() -> None:
    assert hear(TurnDetector(NO_PAUSE), (0.5, 3)) == [SpeechStarted(0)]


def test_padding_stops_at_the_start_of_the_stream() -> None:
    assert hear(TurnDetector(NO_PAUSE), (SILENCE, 2), (SPEECH, 3)) == [SpeechStarted(0)]


def test_padding_stops_at_the_end_of_the_former_utterance() -> None:
    config = TurnDetectionConfig(prefix_padding_ms=1000, pause_ms=0)
    signals = hear(TurnDetector(config), (SPEECH, 10), (SILENCE, 18), (SPEECH, 10))

    assert signals == [SpeechStarted(0), SpeechStopped(832), SpeechStarted(832)]


def test_padding_stops_at_the_last_reset() -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SILENCE, 20))
    detector.reset()

    assert hear(detector, (SILENCE, 2), (SPEECH, 3)) == [SpeechStarted(640)]


def test_the_band_keeps_the_silence_timer() -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SPEECH, 3), (SILENCE, 15))

    assert hear(detector, (BAND, 100)) == []
    assert detector.silence_ms == 480
    assert detector.push(SILENCE) == [SpeechStopped(119 * 32)]


def test_a_speech_frame_clears_the_silence_timer() -> None:
    detector = TurnDetector(NO_PAUSE)

    assert hear(detector, (SPEECH, 3), (SILENCE, 15), (SPEECH, 1), (SILENCE, 15)) == [
        SpeechStarted(0)
    ]
    assert detector.push(SILENCE) == [SpeechStopped(35 * 32)]


@pytest.mark.parametrize(
    ("threshold", "silence", "band"),
    [(0.5, 0.349, 0.351), (0.9, 0.749, 0.751), (0.16, 0.009, 0.011), (0.12, 0.009, 0.01)],
)
def test_silence_is_below_the_threshold_by_0_15_but_not_below_0_01(
    threshold: float, silence: float, band: float
) -> None:
    detector = TurnDetector(TurnDetectionConfig(threshold=threshold, pause_ms=0))
    hear(detector, (1.0, 3), (band, 50))
    assert detector.silence_ms == 0

    assert hear(detector, (silence, 16)) == [SpeechStopped(69 * 32)]


def test_no_hold_stops_at_the_first_silent_frame_and_not_in_the_band() -> None:
    detector = TurnDetector(TurnDetectionConfig(silence_duration_ms=0))

    assert hear(detector, (SPEECH, 3), (BAND, 5)) == [SpeechStarted(0)]
    assert detector.push(SILENCE) == [SpeechStopped(9 * 32)]


def test_two_turns_in_one_append_are_both_found() -> None:
    """1 s speech, 600 ms silence, 1 s speech, then silence: the truth within 40 ms."""
    config = TurnDetectionConfig(prefix_padding_ms=0, pause_ms=0)
    one_second, gap = 31, 19
    signals = hear(
        TurnDetector(config), (SPEECH, one_second), (SILENCE, gap), (SPEECH, one_second), (0.0, 40)
    )

    truth = [0, 1000 + 500, 1600, 2600 + 500]
    assert list(map(type, signals)) == [SpeechStarted, SpeechStopped] * 2
    assert list(map(milliseconds, signals)) == pytest.approx(truth, abs=40)


# --- the pause, a candidate end of turn -----------------------------------------------------


def test_a_pause_is_told_once_and_then_the_stop() -> None:
    signals = hear(TurnDetector(TurnDetectionConfig()), (SPEECH, 3), (SILENCE, 16))

    assert signals == [SpeechStarted(0), SpeechPaused(8 * 32), SpeechStopped(19 * 32)]


def test_speech_within_the_hold_resumes_the_utterance() -> None:
    detector = TurnDetector(TurnDetectionConfig())
    hear(detector, (SPEECH, 3), (SILENCE, 10))

    assert hear(detector, (SPEECH, 2)) == [SpeechResumed(13 * 32)]
    assert hear(detector, (SILENCE, 5)) == [SpeechPaused(20 * 32)]


def test_a_gap_shorter_than_a_pause_is_not_told() -> None:
    detector = TurnDetector(TurnDetectionConfig())

    assert hear(detector, (SPEECH, 3), (SILENCE, 4), (SPEECH, 3)) == [SpeechStarted(0)]


def test_a_pause_as_long_as_the_hold_is_a_stop() -> None:
    config = TurnDetectionConfig(silence_duration_ms=160, pause_ms=160)

    assert hear(TurnDetector(config), (SPEECH, 3), (SILENCE, 5)) == [
        SpeechStarted(0),
        SpeechStopped(8 * 32),
    ]


def test_the_band_does_not_resume() -> None:
    detector = TurnDetector(TurnDetectionConfig())
    hear(detector, (SPEECH, 3), (SILENCE, 6))

    assert hear(detector, (BAND, 3), (SILENCE, 9)) == []


def test_a_shorter_hold_ends_this_pause_at_the_next_silent_frame() -> None:
    detector = TurnDetector(TurnDetectionConfig())
    hear(detector, (SPEECH, 3), (SILENCE, 10))
    detector.set_hold(200)

    assert detector.push(SILENCE) == [SpeechStopped(14 * 32)]


def test_a_longer_hold_keeps_this_pause_open() -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SPEECH, 3), (SILENCE, 5))
    detector.set_hold(1600)

    assert hear(detector, (SILENCE, 44)) == []
    assert detector.push(SILENCE) == [SpeechStopped(53 * 32)]


@pytest.mark.parametrize("frames", [1, 3])
def test_the_configured_hold_is_back_after_the_pause(frames: int) -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SPEECH, 3), (SILENCE, 5))
    detector.set_hold(200)
    hear(detector, (SPEECH, frames))

    assert hear(detector, (SILENCE, 15)) == []
    assert hear(detector, (SILENCE, 1)) == [SpeechStopped((24 + frames) * 32)]


def test_the_configured_hold_is_back_in_the_next_utterance() -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SPEECH, 3), (SILENCE, 5))
    detector.set_hold(192)
    hear(detector, (SILENCE, 1))
    assert not detector.speaking

    assert hear(detector, (SPEECH, 3), (SILENCE, 15)) == [SpeechStarted(9 * 32)]


def test_a_verdict_after_speech_resumed_is_too_late() -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SPEECH, 3), (SILENCE, 5), (SPEECH, 1))
    detector.set_hold(32)

    assert hear(detector, (SILENCE, 15)) == []


def test_a_hold_set_outside_an_utterance_does_nothing() -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SILENCE, 5))
    detector.set_hold(32)

    assert hear(detector, (SPEECH, 3), (SILENCE, 15)) == [SpeechStarted(0)]


def test_reset_forgets_the_utterance_and_keeps_the_clock() -> None:
    detector = TurnDetector(TurnDetectionConfig())
    hear(detector, (SPEECH, 10), (SILENCE, 6))
    detector.reset()

    assert (detector.speaking, detector.silence_ms, detector.position_ms) == (False, 0, 512)
    assert hear(detector, (SILENCE, 20)) == []
    assert hear(detector, (SPEECH, 3)) == [SpeechStarted(36 * 32 - 300)]


def test_reset_forgets_half_an_onset() -> None:
    detector = TurnDetector(NO_PAUSE)
    hear(detector, (SPEECH, 2))
    detector.reset()

    assert hear(detector, (SPEECH, 2)) == []


# --- what holds for any stream ---------------------------------------------------------------

configs = st.builds(
    TurnDetectionConfig,
    threshold=st.floats(0.16, 1.0),
    prefix_padding_ms=st.integers(0, 2000),
    silence_duration_ms=st.integers(0, 1500),
    min_speech_duration_ms=st.integers(0, 500),
    pause_ms=st.integers(0, 500),
)
frame_lengths = st.sampled_from([10.0, 30.0, 32.0, 100 / 3])
runs = st.tuples(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)), st.integers(1, 40))
streams = st.lists(runs, max_size=30)


@given(configs, frame_lengths, streams)
def test_starts_and_stops_alternate(
    config: TurnDetectionConfig, frame_ms: float, stream: list[tuple[float, int]]
) -> None:
    detector = TurnDetector(config, frame_ms)
    signals = edges(hear(detector, *stream))

    expected = [SpeechStarted, SpeechStopped] * len(signals)
    assert list(map(type, signals)) == expected[: len(signals)]
    assert detector.speaking == (len(signals) % 2 == 1)


@given(configs, frame_lengths, st.lists(st.one_of(runs, st.just("reset"), st.just("hold"))))
def test_milliseconds_never_fall_nor_pass_the_clock(
    config: TurnDetectionConfig, frame_ms: float, steps: list[tuple[float, int] | str]
) -> None:
    detector = TurnDetector(config, frame_ms)
    last = 0
    for step in steps:
        if step == "reset":
            detector.reset()
        elif step == "hold":
            detector.set_hold(200)
        elif isinstance(step, tuple):
            for signal in hear(detector, step):
                assert last <= milliseconds(signal) <= round(detector.position_ms)
                last = milliseconds(signal)


@given(configs, frame_lengths, streams)
def test_pauses_and_resumptions_alternate_inside_an_utterance(
    config: TurnDetectionConfig, frame_ms: float, stream: list[tuple[float, int]]
) -> None:
    allowed: dict[type[TurnSignal] | None, set[type[TurnSignal]]] = {
        None: {SpeechStarted},
        SpeechStarted: {SpeechPaused, SpeechStopped},
        SpeechPaused: {SpeechResumed, SpeechStopped},
        SpeechResumed: {SpeechPaused, SpeechStopped},
        SpeechStopped: {SpeechStarted},
    }
    former: type[TurnSignal] | None = None
    for signal in hear(TurnDetector(config, frame_ms), *stream):
        assert type(signal) in allowed[former]
        former = type(signal)


@given(configs, frame_lengths, streams)
def test_silence_ends_every_utterance_within_the_hold(
    config: TurnDetectionConfig, frame_ms: float, stream: list[tuple[float, int]]
) -> None:
    """Whatever was heard before, a stop comes within silence_duration_ms and one frame."""
    detector = TurnDetector(config, frame_ms)
    hear(detector, *stream)
    bound = math.ceil(config.silence_duration_ms / frame_ms) + 1
    was_speaking = detector.speaking

    signals = edges(hear(detector, (0.0, bound)))

    assert list(map(type, signals)) == ([SpeechStopped] if was_speaking else [])
    assert not detector.speaking


@given(configs, st.integers(1, 12))
def test_any_number_of_turns_is_found_in_one_stream(
    config: TurnDetectionConfig, turns: int
) -> None:
    speech = math.ceil(config.min_speech_duration_ms / 32) + 1
    silence = math.ceil(config.silence_duration_ms / 32) + 1
    signals = edges(hear(TurnDetector(config), *[(1.0, speech), (0.0, silence)] * turns))

    assert list(map(type, signals)) == [SpeechStarted, SpeechStopped] * turns


@given(configs, streams)
def test_the_clock_counts_every_frame(
    config: TurnDetectionConfig, stream: list[tuple[float, int]]
) -> None:
    detector = TurnDetector(config)
    hear(detector, *stream)

    assert detector.position_ms == 32 * sum(frames for _, frames in stream)
