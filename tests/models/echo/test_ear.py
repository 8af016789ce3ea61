"""What echo hears: turns, their words, and when they are over."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.echo.driver import (
    COMMITS_ONLY,
    CONFIG,
    PACED,
    SELF_START,
    SELF_START_PACED,
    EchoDriver,
    silence,
    tone,
)

from omniduplex.engine.duplex.model_events import (
    Listen,
    UserSpeechStarted,
    UserTranscript,
    UserTurnEnded,
)
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.protocol.duplex import TurnDetection


def test_a_tone_between_silences_is_a_turn() -> None:
    echo = EchoDriver()
    echo.append(silence(160) + tone(1200) + silence(240))

    assert echo.events == [
        Listen(),
        UserSpeechStarted(160),
        UserTurnEnded(1600, "tone 440 Hz 1.2 s"),
    ]


@pytest.mark.parametrize("hz", [120, 300, 440, 1000, 3130, 7900])
def test_the_transcript_names_the_pitch(hz: int) -> None:
    echo = EchoDriver()
    echo.append(tone(800, hz) + silence(240))

    assert echo.of(UserTurnEnded)[0].transcript == f"tone {hz} Hz 0.8 s"


def test_a_constant_offset_has_no_pitch() -> None:
    offset = np.frombuffer(tone(800, 300), "<i2") // 4 + 8000
    echo = EchoDriver()
    echo.append(offset.astype("<i2").tobytes() + silence(240))

    assert echo.of(UserTurnEnded)[0].transcript == "tone 300 Hz 0.8 s"


def test_what_is_quieter_than_speech_is_silence() -> None:
    quiet = (np.frombuffer(tone(400), "<i2") // 64).astype("<i2").tobytes()
    echo = EchoDriver()
    echo.append(quiet)

    assert echo.events == [Listen()]


def test_a_short_pause_belongs_to_the_turn() -> None:
    echo = EchoDriver()
    echo.append(tone(400) + silence(160) + tone(400) + silence(240))

    assert echo.of(UserTurnEnded) == [UserTurnEnded(1200, "tone 440 Hz 1.0 s")]


@pytest.mark.parametrize(("silence_ms", "end_ms"), [(0, 480), (80, 480), (200, 640), (500, 960)])
def test_the_client_sets_the_silence_that_ends_a_turn(silence_ms: int, end_ms: int) -> None:
    detection = TurnDetection(silence_duration_ms=silence_ms)
    echo = EchoDriver(config=msgspec.structs.replace(CONFIG, turn_detection=detection))
    echo.append(tone(400) + silence(1000))

    assert [event.audio_end_ms for event in echo.of(UserTurnEnded)] == [end_ms]


@pytest.mark.parametrize(("padding_ms", "start_ms"), [(0, 480), (300, 180), (5000, 0)])
def test_a_turn_is_told_to_begin_the_clients_padding_earlier(
    padding_ms: int, start_ms: int
) -> None:
    detection = TurnDetection(prefix_padding_ms=padding_ms)
    echo = EchoDriver(config=msgspec.structs.replace(CONFIG, turn_detection=detection))
    echo.append(silence(480) + tone(400))

    assert echo.of(UserSpeechStarted) == [UserSpeechStarted(start_ms)]


@pytest.mark.parametrize("order", ["commit", "clear", "its end"])
def test_padding_takes_nothing_from_what_is_sealed_or_dropped(order: str) -> None:
    detection = TurnDetection(prefix_padding_ms=300, silence_duration_ms=80)
    echo = EchoDriver(config=msgspec.structs.replace(CONFIG, turn_detection=detection))
    echo.append(tone(400))
    if order == "its end":
        echo.append(silence(80))
    elif order == "clear":
        echo.append(tone(80))
        echo.clear()
    else:
        echo.append(tone(80))
        echo.commit()
    echo.append(silence(80) + tone(80))

    assert echo.of(UserSpeechStarted)[1] == UserSpeechStarted(480)


def test_an_update_changes_the_silence_in_the_middle_of_a_turn() -> None:
    echo = EchoDriver()
    echo.append(tone(400))
    detection = TurnDetection(silence_duration_ms=400)
    echo.update(msgspec.structs.replace(CONFIG, turn_detection=detection))
    echo.append(silence(320))
    assert echo.of(UserTurnEnded) == []

    echo.append(silence(80))
    assert [event.audio_end_ms for event in echo.of(UserTurnEnded)] == [800]


def test_without_turn_decisions_only_a_commit_ends_a_turn() -> None:
    echo = EchoDriver(config=COMMITS_ONLY)
    echo.append(tone(400) + silence(2000))
    assert echo.events == [Listen()]

    echo.commit("item_7")
    assert echo.events[1:] == [UserTranscript("item_7", "tone 440 Hz 0.4 s", 0.4)]


def test_a_commit_of_silence_has_no_words() -> None:
    echo = EchoDriver(config=COMMITS_ONLY)
    echo.append(silence(400))
    echo.commit("item_7")

    assert echo.of(UserTranscript) == [UserTranscript("item_7", "", 0.0)]


def test_a_commit_takes_audio_short_of_a_unit_and_the_clock_stays_exact() -> None:
    echo = EchoDriver()
    echo.append(tone(100))
    echo.commit("item_1")
    echo.append(silence(80) + tone(80))
    echo.commit("item_2")

    assert echo.of(UserTranscript) == [
        UserTranscript("item_1", "tone 440 Hz 0.1 s", 0.1),
        UserTranscript("item_2", "tone 440 Hz 0.1 s", 0.08),
    ]
    assert echo.of(UserSpeechStarted)[1] == UserSpeechStarted(180)


def test_a_clear_forgets_the_utterance_and_keeps_the_clock() -> None:
    echo = EchoDriver()
    echo.append(tone(420))
    echo.clear()
    echo.append(silence(400) + tone(80))

    assert echo.of(UserTurnEnded) == []
    assert echo.of(UserSpeechStarted) == [UserSpeechStarted(0), UserSpeechStarted(820)]


def test_what_the_ear_says_of_a_cleared_utterance_is_stale() -> None:
    echo = EchoDriver()
    echo.held = True
    echo.append(tone(400) + silence(240))
    echo.clear()
    echo.deliver()

    assert echo.events == [Listen()]


def test_forced_listening_starts_no_turn_but_hears_the_end_of_one() -> None:
    echo = EchoDriver()
    echo.append(tone(400), force_listen=True)
    assert echo.events == [Listen()]

    echo.append(tone(400))
    echo.append(silence(240), force_listen=True)
    assert echo.events[1:] == [
        UserSpeechStarted(400),
        UserTurnEnded(1040, "tone 440 Hz 0.4 s"),
    ]


def test_a_unit_is_forced_when_any_of_it_is() -> None:
    echo = EchoDriver()
    echo.append(tone(40), force_listen=True)
    echo.append(tone(120))

    assert echo.of(UserSpeechStarted) == [UserSpeechStarted(80)]


@settings(deadline=None, max_examples=40)
@given(
    cuts=st.lists(st.integers(0, 2800 * 32 // 2), max_size=12),
    options=st.sampled_from([EchoOptions(), PACED, SELF_START, SELF_START_PACED]),
)
def test_any_slicing_of_the_audio_gives_the_same_events(
    cuts: list[int], options: EchoOptions
) -> None:
    audio = silence(90) + tone(800, 600) + silence(500) + tone(410) + silence(1000)
    whole, sliced = EchoDriver(options), EchoDriver(options)
    whole.append(audio)
    edges = [0, *sorted(2 * cut for cut in cuts), len(audio)]
    for start, end in pairwise(edges):
        sliced.append(audio[start:end])

    assert sliced.events == whole.events
    assert len(whole.of(UserTurnEnded)) == 2
