"""What a client orders of an ear: commits, clears, and settings."""

from tests.models.local.ear_driver import MANUAL, SERVER, Driver

from omniduplex.models.local.messages import (
    CommitHeard,
    EarSettings,
    SpeechBegan,
    TurnDrafted,
    TurnEnded,
)
from omniduplex.models.local.stages.ear import PAUSE_MS


def test_a_manual_ear_only_keeps_until_the_commit() -> None:
    driver = Driver((1024, 2048), settings=MANUAL)
    driver.hear(5000)
    assert driver.told == []
    assert driver.recognitions == {}

    driver.do(driver.ear.commit("item_1"))
    assert driver.recognise("hello") == (524, 2548)  # half a second around the speech
    assert driver.events == [CommitHeard("item_1", "hello", 5.0)]


def test_a_commit_takes_audio_up_to_its_last_sample_and_leaves_none() -> None:
    driver = Driver((0, 1000), (1010, 2000), settings=MANUAL)
    driver.hear(1010)
    driver.do(driver.ear.commit("item_1"))
    driver.hear(1000)
    driver.do(driver.ear.commit("item_2"))

    assert driver.recognise("one") == (0, 1010)
    assert driver.recognise("two") == (1010, 2010)
    assert driver.events == [CommitHeard("item_1", "one", 1.01), CommitHeard("item_2", "two", 1.0)]


def test_a_commit_of_silence_has_no_words_and_costs_no_recognition() -> None:
    driver = Driver(settings=MANUAL)
    driver.hear(3000)
    driver.do(driver.ear.commit("item_1"))
    assert driver.events == [CommitHeard("item_1", "", 3.0)]
    assert driver.recognitions == {}


def test_silence_after_a_commit_is_not_heard_as_its_speech_again() -> None:
    driver = Driver((0, 992), settings=MANUAL)
    driver.answer = lambda _: "words"
    driver.hear(1024)
    driver.do(driver.ear.commit("item_1"))
    driver.hear(1024)
    driver.do(driver.ear.commit("item_2"))
    assert driver.events == [
        CommitHeard("item_1", "words", 1.024),
        CommitHeard("item_2", "", 1.024),
    ]


def test_a_commit_ends_an_open_turn_and_the_clock_runs_on() -> None:
    driver = Driver((1024, 2048), (4064, 5056))
    driver.hear(1800)
    driver.do(driver.ear.commit("item_1"))
    assert driver.recognise("cut short") == (524, 1800)

    driver.answer = lambda _: "next"
    driver.hear(5000)
    assert driver.events[:2] == [SpeechBegan(724), CommitHeard("item_1", "cut short", 1.8)]
    assert driver.events[-2:] == [TurnDrafted("next"), TurnEnded(5568, "next")]


def test_a_commit_in_a_pause_uses_the_drafts_words() -> None:
    driver = Driver((1024, 2048))
    driver.hear(2208)
    driver.recognise("hello")
    driver.hear(64)
    driver.do(driver.ear.commit("item_1"))

    assert driver.recognitions == {}
    assert driver.events[-1] == CommitHeard("item_1", "hello", 2.272)


def test_a_commit_after_a_draft_was_taken_back_hears_what_came_after_it() -> None:
    driver = Driver((1024, 2048), (2304, 4000))
    driver.hear(2208)
    driver.recognise("set a timer")
    driver.hear(800)
    driver.do(driver.ear.commit("item_1"))
    assert driver.recognise("set a timer for ten minutes") == (524, 3008)


def test_clear_forgets_the_turn_and_keeps_the_clock() -> None:
    driver = Driver((1024, 2048), (3072, 4064))
    driver.hear(2208)
    (job,) = driver.recognitions
    driver.do(driver.ear.clear())
    assert driver.dropped == [job]

    driver.answer = lambda heard: f"{heard}"
    driver.hear(4000)
    assert driver.events == [
        SpeechBegan(724),
        SpeechBegan(2772),
        TurnDrafted(f"(2572, {4064 + PAUSE_MS})"),
        TurnEnded(4576, f"(2572, {4064 + PAUSE_MS})"),
    ]


def test_audio_before_a_clear_is_in_no_turn() -> None:
    driver = Driver((1024, 2048))
    driver.hear(1000)
    driver.do(driver.ear.clear())
    driver.answer = lambda heard: f"{heard}"
    driver.hear(3000)
    assert driver.events[-1] == TurnEnded(2560, f"(1000, {2048 + PAUSE_MS})")


def test_new_settings_count_from_the_end_of_the_open_turn_on() -> None:
    driver = Driver((1024, 2048), (4064, 5056))
    driver.answer = lambda _: "words"
    driver.hear(1500)
    driver.do(driver.ear.configure(EarSettings(hold_ms=992, prefix_padding_ms=0)))
    driver.hear(5500)

    starts_and_ends = [event for event in driver.events if not isinstance(event, TurnDrafted)]
    assert starts_and_ends == [
        SpeechBegan(724),
        TurnEnded(2560, "words"),
        SpeechBegan(4064),
        TurnEnded(6048, "words"),
    ]


def test_a_client_that_takes_over_keeps_what_was_said() -> None:
    driver = Driver((1024, 2048))
    driver.hear(1500)
    driver.do(driver.ear.configure(MANUAL))
    driver.hear(2000)
    driver.do(driver.ear.commit("item_1"))

    start, stop = driver.recognise("all of it")
    assert start <= 724
    assert stop == 2548


def test_settings_that_were_replaced_before_they_counted_never_do() -> None:
    driver = Driver((1024, 2048), (4064, 5056), (7072, 8064))
    driver.answer = lambda _: "words"
    driver.hear(1500)
    for settings in (EarSettings(hold_ms=992), MANUAL, SERVER):
        driver.do(driver.ear.configure(settings))
    driver.hear(8000)
    ends = [event.audio_end_ms for event in driver.events if isinstance(event, TurnEnded)]
    assert ends == [2560, 5568, 8576]


def test_the_same_settings_again_change_nothing() -> None:
    driver = Driver((1024, 2048), settings=MANUAL)
    driver.hear(1500)
    assert driver.ear.configure(MANUAL) == []
    driver.hear(1500)
    driver.do(driver.ear.commit("item_1"))
    assert driver.recognise("words") == (524, 2548)
