import math

import numpy as np
import pytest
from tests.models.local.ear_driver import SEMANTIC, Driver

from omniduplex.audio.pcm import SAMPLE_BYTES
from omniduplex.models.local.messages import (
    SpeechBegan,
    SpeechGrew,
    TurnDrafted,
    TurnEnded,
)
from omniduplex.models.local.sound_kind import LEAD_FRAMES, Kinds, samples_to_hear
from omniduplex.models.local.stages.ear import OVERLAP_PAUSE_MS, PAUSE_MS
from omniduplex.models.local.stages.frame_sound import FrameSound
from omniduplex.models.local.stages.speech_watch import ASK_LAST, FRAME_MS, SpeechWatch

SOUND = FrameSound(0.01, 1.0, 0.1)


def grown(driver: Driver) -> list[SpeechGrew]:
    return [heard for heard in driver.events if isinstance(heard, SpeechGrew)]


def told_ms(driver: Driver) -> list[int]:
    return [heard.speech_ms for heard in grown(driver)]


def watched(*speech: tuple[int, int]) -> Driver:
    driver = Driver(*speech)
    driver.do(driver.ear.watch(True))
    return driver


def test_speech_is_told_of_every_96_ms_from_its_start_on() -> None:
    driver = watched((1024, 1504))
    driver.hear(1504)

    assert isinstance(driver.events[0], SpeechBegan)
    assert told_ms(driver) == [96, 192, 288, 384, 480]


def test_pauses_are_no_speech() -> None:
    driver = watched((1024, 1216), (1344, 1536))
    driver.hear(1536)
    assert told_ms(driver) == [96, 192, 288, 384]


def test_nothing_is_told_while_nobody_wants_to_know() -> None:
    driver = Driver((1024, 2048))
    driver.hear(1504)
    assert told_ms(driver) == []
    assert driver.glimpses == {}

    driver.do(driver.ear.watch(True))
    assert told_ms(driver) == [480]  # the speech before counts
    driver.do(driver.ear.watch(False))
    driver.hear(500)
    assert told_ms(driver) == [480]


def test_words_are_asked_for_early_and_again_one_at_a_time() -> None:
    driver = watched((1024, 3072))
    driver.hear(1376)
    assert list(driver.glimpses.values()) == [(524, 1344)]

    driver.hear(800)  # it takes its time
    assert len(driver.glimpses) == 1
    (job,) = driver.glimpses
    driver.do(driver.ear.recognised(job, "wait a", 0.1))
    assert grown(driver)[-1].transcript == "wait a"

    driver.glimpses.clear()
    driver.hear(64)
    assert len(driver.glimpses) == 1
    assert grown(driver)[-1].transcript == "wait a"


def test_over_an_answer_a_pause_is_longer_than_in_a_turn() -> None:
    driver = watched((1024, 1440))
    driver.hear(1440 + PAUSE_MS)
    assert driver.recognitions == {}
    driver.hear(OVERLAP_PAUSE_MS - PAUSE_MS)
    assert driver.recognise("mm-hm") == (524, 1440 + OVERLAP_PAUSE_MS)


def test_a_pause_makes_room_for_the_words_of_the_whole() -> None:
    driver = watched((1024, 1440))
    driver.hear(1440 + OVERLAP_PAUSE_MS)
    (dropped,) = driver.dropped
    assert driver.glimpses == {}
    assert driver.recognise("mm-hm") == (524, 1440 + OVERLAP_PAUSE_MS)

    assert driver.events[-1] == TurnDrafted("mm-hm")
    assert grown(driver)[-1].transcript == "mm-hm"
    assert driver.ear.recognised(dropped, "too late", 0.1) == []


def test_that_there_were_no_words_is_told() -> None:
    driver = watched((1024, 1216))
    driver.hear(1216 + OVERLAP_PAUSE_MS)
    driver.recognise("")
    assert grown(driver)[-1].transcript == ""
    assert not any(isinstance(heard, TurnDrafted) for heard in driver.events)


def test_a_sound_over_an_answer_is_over_sooner_than_a_turn() -> None:
    driver = Driver((1024, 1344), settings=SEMANTIC)
    driver.do(driver.ear.watch(True))
    driver.answer = lambda _: "mm-hm"
    driver.hear(3000)
    assert driver.events[-1] == TurnEnded(1344 + 416, "mm-hm")
    assert driver.judgements == {}


def test_an_interruption_that_is_known_for_one_may_pause_like_any_turn() -> None:
    driver = Driver((1024, 1344), settings=SEMANTIC)
    driver.do(driver.ear.watch(True))
    driver.answer = lambda _: "wait"
    driver.hear(1344 + 128)
    driver.do(driver.ear.watch(False))
    driver.hear(32)
    driver.judge(0.1)
    driver.hear(3000)
    assert driver.events[-1] == TurnEnded(1344 + 992, "wait")


def classify(driver: Driver, kinds: Kinds) -> int:
    job = min(driver.classified)
    frames, pcm = driver.classified.pop(job)
    assert len(pcm) == SAMPLE_BYTES * samples_to_hear(frames)
    driver.do(driver.ear.classified(job, kinds))
    return frames


def test_the_kind_of_a_sound_is_asked_for_before_there_are_words() -> None:
    driver = watched((1024, 3072))
    driver.hear(1024 + 256)
    assert classify(driver, Kinds(0.4, 0.5, 0.1)) == 8
    assert driver.glimpses == {}
    assert (grown(driver)[-1].floor, grown(driver)[-1].tic) == (0.4, 0.1)

    driver.hear(64)
    assert classify(driver, Kinds(0.9, 0.1, 0.0)) == 10
    assert grown(driver)[-1].floor == 0.9
    driver.hear(1000)
    assert classify(driver, Kinds(0.9, 0.1, 0.0)) == 13
    assert driver.classified == {}


def test_it_is_heard_from_before_the_onset_on() -> None:
    driver = watched((1024, 3072))
    driver.hear(1024 + 256)
    ((_, pcm),) = driver.classified.values()
    heard = np.frombuffer(pcm, np.int16)
    assert (heard[0], heard[-1]) == (1024 - LEAD_FRAMES * FRAME_MS, 1024 + 256 - 1)


def test_nothing_is_classified_while_nobody_wants_to_know() -> None:
    driver = Driver((1024, 3072))
    driver.hear(3500)
    assert driver.classified == {}


def test_a_short_sound_in_silence_is_classified_once_it_is_over() -> None:
    driver = Driver((1024, 1248))
    driver.answer = lambda _: "and"
    driver.hear(1248 + 160)
    assert classify(driver, Kinds(0.0, 0.1, 0.9)) == 13
    driver.hear(1000)
    (ended,) = [told.heard for told in driver.told if isinstance(told.heard, TurnEnded)]
    assert ended.speech is not None
    assert ended.speech.tic == 0.9


def test_what_was_judged_too_late_is_about_nothing() -> None:
    driver = watched((1024, 1312), (3008, 3264))
    driver.answer = lambda _: "words"
    driver.hear(1312)
    (job,) = driver.classified
    driver.hear(3200 - 1312)
    driver.do(driver.ear.classified(job, Kinds(0.9, 0.1, 0.0)))
    assert grown(driver)[-1].floor is None


def test_a_new_turn_begins_at_nothing() -> None:
    driver = watched((1024, 1504), (3008, 3200))
    driver.answer = lambda _: "words"
    driver.hear(3200)

    assert any(isinstance(heard, TurnEnded) for heard in driver.events)
    assert told_ms(driver)[-2:] == [96, 192]
    assert grown(driver)[-1].transcript is None


def test_a_failed_glimpse_leaves_room_for_the_next() -> None:
    driver = watched((1024, 3072))
    driver.hear(1376)
    (job,) = driver.glimpses
    driver.do(driver.ear.unrecognised(job, "broken"))
    driver.glimpses.clear()
    driver.hear(500)
    assert len(driver.glimpses) == 1
    assert {heard.transcript for heard in grown(driver)} == {None}


def test_the_level_is_the_rms_of_the_speech() -> None:
    watch = SpeechWatch(active=True)
    for level in (0.1, 0.3):
        watch.add(FrameSound(level * level, 1.0, 0.1), 0)
    assert watch.progress().level_dbfs == round(20 * math.log10(math.sqrt(0.05)), 1)
    assert watch.progress().brightness_db == -10
    assert SpeechWatch().progress().level_dbfs == -100
    assert SpeechWatch().progress().brightness_db is None


def test_a_long_interruption_is_not_read_on_for_ever() -> None:
    watch = SpeechWatch(active=True)
    asked = []
    for frame in range(1, 3 * ASK_LAST):
        watch.add(SOUND, 0)
        if watch.wants_words():
            asked.append(frame * FRAME_MS)
    assert asked[:2] == [320, 736]
    assert asked[-1] <= ASK_LAST * FRAME_MS


@pytest.mark.parametrize("order", ["commit", "clear"])
def test_a_glimpse_at_audio_that_is_sealed_is_dropped(order: str) -> None:
    driver = watched((1024, 3072))
    driver.hear(1376)
    (job,) = driver.glimpses
    ear = driver.ear
    driver.do(ear.commit("item_1", 1) if order == "commit" else ear.clear(1))
    assert job in driver.dropped
    assert ear.recognised(job, "old", 0.1) == []


def test_more_words_than_a_short_sound_can_hold_are_none() -> None:
    driver = watched((1024, 1216))
    driver.hear(1216 + OVERLAP_PAUSE_MS)
    driver.recognise("I'm not a good guy.")
    driver.hear(1000)

    assert grown(driver)[-1].transcript == ""
    assert driver.events[-1] == TurnEnded(1632, "")


@pytest.mark.parametrize(("ms", "words"), [(320, "No, I"), (192, "I see."), (992, "a b c d e f")])
def test_short_answers_are_words(ms: int, words: str) -> None:
    driver = Driver((1024, 1024 + ms))
    driver.hear(1024 + ms + PAUSE_MS)
    driver.recognise(words)
    assert driver.events[-1] == TurnDrafted(words)


def test_the_words_of_long_speech_are_not_counted() -> None:
    watch = SpeechWatch()
    assert watch.most_words() is None
    for _ in range(1000 // FRAME_MS + 1):
        watch.add(SOUND, 0)
    assert watch.most_words() is None
