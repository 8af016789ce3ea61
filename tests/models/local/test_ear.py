"""Turns as an ear hears them: begun, drafted, judged, ended."""

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.local.ear_driver import MANUAL, SEMANTIC, SERVER, Driver, Span
from tests.models.local.speech import told_of_words

from omniduplex.models.local import messages
from omniduplex.models.local.messages import (
    EarSettings,
    KeptListening,
    SpeechBegan,
    SpeechWentOn,
    TurnDrafted,
    TurnEnded,
)
from omniduplex.models.local.stages import ear
from omniduplex.models.local.stages.ear import FRAME_MS, JUDGE_MS, PAUSE_MS, SETTLE_MS


def test_a_turn_begins_pauses_and_ends_with_the_drafts_words() -> None:
    driver = Driver((1024, 2048))
    driver.hear(2048)
    assert driver.events == [SpeechBegan(724)]

    driver.hear(160)
    assert driver.recognise("hello there") == (524, 2048 + PAUSE_MS)
    assert driver.events[1:] == [TurnDrafted("hello there")]

    driver.hear(3000)
    assert driver.events[2:] == [TurnEnded(2560, "hello there")]
    assert driver.recognitions == {}


def test_a_turn_waits_for_its_words_and_for_nothing_else() -> None:
    driver = Driver((1024, 2048))
    driver.hear(3000)
    assert driver.events == [SpeechBegan(724)]

    driver.recognise("late words")

    assert driver.events[1:] == [TurnEnded(2560, "late words")]


def test_speech_after_a_draft_takes_it_back() -> None:
    driver = Driver((1024, 2048), (2304, 3008))
    driver.hear(2208)
    driver.recognise("set a timer")
    driver.hear(200)
    assert driver.events[1:] == [TurnDrafted("set a timer"), SpeechWentOn()]

    driver.hear(1600)
    assert driver.recognise("set a timer for ten minutes")[0] == 524
    assert driver.events[3:] == [TurnEnded(3520, "set a timer for ten minutes")]


def test_a_superseded_recognition_is_dropped_and_its_words_are_ignored() -> None:
    driver = Driver((1024, 2048), (2304, 3008))
    driver.hear(2208)
    (job,) = driver.recognitions
    driver.hear(200)

    assert driver.dropped == [job]
    assert driver.ear.recognised(job, "stale", 0.2) == []
    assert SpeechWentOn() not in driver.events


def test_speech_within_its_hold_is_one_turn() -> None:
    driver = Driver((1024, 2048), (2528, 3008))
    driver.hear(4000)
    driver.recognise("one turn")
    assert driver.events == [SpeechBegan(724), TurnEnded(3520, "one turn")]


def test_a_pause_that_could_not_be_recognised_is_heard_again_when_the_turn_goes_on() -> None:
    driver = Driver((1000, 2000), (2300, 3000))
    driver.hear(2200)
    (job,) = driver.recognitions
    driver.recognitions.clear()
    driver.do(driver.ear.unrecognised(job, "broken"))
    driver.hear(1600)
    heard = driver.recognise("all of it")

    assert heard[0] < 1000
    assert driver.events[-1] == TurnEnded(3520, "all of it")
    assert not any(isinstance(told.heard, TurnDrafted) for told in driver.told)


def test_noise_ends_without_words_and_without_a_draft() -> None:
    driver = Driver((1024, 1184))
    driver.answer = lambda _: ""
    driver.hear(3000)
    assert driver.events == [SpeechBegan(724), TurnEnded(1696, "")]


def test_a_click_is_no_turn() -> None:
    driver = Driver((1024, 1088))
    driver.hear(3000)
    assert driver.events == []
    assert driver.recognitions == {}


def test_two_turns_in_one_append_keep_their_order_and_their_audio() -> None:
    driver = Driver((1024, 2048), (2688, 3712))
    driver.hear(6000)
    assert driver.events == [SpeechBegan(724)]  # the second turn may not begin in the first

    assert driver.recognise("first") == (524, 2048 + PAUSE_MS)
    assert driver.events[1:] == [TurnEnded(2560, "first"), SpeechBegan(2560)]
    assert driver.recognise("second") == (2560, 3712 + PAUSE_MS)
    assert driver.events[3:] == [TurnEnded(4224, "second")]


def test_words_that_come_out_of_order_are_told_in_order() -> None:
    driver = Driver((1024, 2048), (2688, 3712))
    driver.hear(6000)
    first, second = sorted(driver.recognitions)
    driver.do(driver.ear.recognised(second, "second", 0.1))
    assert driver.events == [SpeechBegan(724)]

    driver.do(driver.ear.recognised(first, "first", 0.1))
    assert [type(event) for event in driver.events[1:]] == [TurnEnded, SpeechBegan, TurnEnded]


def test_silence_that_is_shorter_than_a_pause_still_ends_a_turn() -> None:
    driver = Driver((1024, 2048), settings=EarSettings(hold_ms=64))
    driver.answer = lambda heard: f"{heard}"
    driver.hear(2500)
    assert driver.events == [SpeechBegan(724), TurnEnded(2112, "(524, 2112)")]


@pytest.mark.parametrize(
    ("probability", "end_ms"),
    [
        (0.9, 2048 + 320),
        (0.5, 2048 + 320),
        (0.4, 2048 + 480),
        (0.25, 2048 + 672),
        (0.2, 2048 + 992),
    ],
)
def test_the_sound_of_the_turn_sets_the_hold(probability: float, end_ms: int) -> None:
    driver = Driver((1024, 2048), settings=SEMANTIC)
    driver.answer = lambda _: "words"
    driver.hear(2208)
    assert driver.judge(probability) == (524, 2048 + JUDGE_MS)
    driver.hear(3000)

    assert driver.events[-1] == TurnEnded(end_ms, "words")
    assert driver.told[-1].heard == KeptListening()
    ended = next(tell for tell in driver.told if isinstance(tell.heard, TurnEnded))
    assert ended.metrics[messages.HOLD] == (end_ms - 2048) / 1000
    assert ended.metrics[messages.RECOGNITION] == 0.2
    assert ended.metrics[messages.END_OF_TURN] == 0.05


def test_without_a_verdict_the_long_hold_ends_the_turn() -> None:
    driver = Driver((1024, 2048), settings=SEMANTIC)
    driver.answer = lambda _: "words"
    driver.hear(4000)
    assert driver.events[-1] == TurnEnded(2048 + 992, "words")
    assert driver.judgements == {}  # dropped with the turn


def test_a_verdict_on_a_pause_that_is_over_does_not_count() -> None:
    driver = Driver((1024, 2048), (2304, 3008), settings=SEMANTIC)
    driver.answer = lambda _: "words"
    driver.hear(2208)
    (job,) = driver.judgements
    driver.hear(1100)
    driver.ear.judged(job, 1.0, 0.05)
    driver.hear(3000)

    assert driver.events[-1] == TurnEnded(3008 + 992, "words")


def test_a_silence_that_grows_is_judged_again_until_the_turn_sounds_complete() -> None:
    driver = Driver((1024, 2048), settings=SEMANTIC)
    driver.answer = lambda _: "words"
    driver.hear(2208)
    driver.judge(0.1)
    driver.hear(32)
    assert driver.judge(0.1) == (524, 2048 + 192)
    driver.hear(128)
    assert driver.judge(0.9) == (524, 2048 + 256)
    driver.hear(32)

    assert driver.events[-1] == TurnEnded(2048 + 352, "words")
    assert driver.judgements == {}


def test_a_silence_is_not_judged_twice_at_once() -> None:
    driver = Driver((1024, 2048), settings=SEMANTIC)
    driver.hear(2800)
    assert len(driver.judgements) == 1


def test_server_vad_asks_for_no_verdict() -> None:
    driver = Driver((1024, 2048))
    driver.hear(4000)
    assert driver.judgements == {}


def test_a_verdict_hears_the_last_eight_seconds() -> None:
    driver = Driver((1024, 13024), settings=SEMANTIC)
    driver.hear(13200)
    assert driver.judge(0.9) == (13024 + JUDGE_MS - 8000, 13024 + JUDGE_MS)


def test_the_end_is_stamped_with_the_arrival_of_its_audio() -> None:
    driver = Driver((1024, 2048))
    driver.answer = lambda _: "words"
    driver.hear(2048)
    driver.hear(1000, slices=[500, 530])
    ended = next(tell for tell in driver.told if isinstance(tell.heard, TurnEnded))
    assert ended.metrics[messages.AT_TURN_AUDIO] == 2.578


def test_long_turns_settle_their_words_on_the_way() -> None:
    first_ms = 1024 + SETTLE_MS + 32
    driver = Driver((1024, first_ms), (first_ms + 256, first_ms + 1280))
    driver.answer = lambda heard: f"{heard[1]}"
    driver.hear(first_ms + 3000)

    pause = first_ms + PAUSE_MS
    last = first_ms + 1280 + PAUSE_MS
    assert driver.events[-1] == TurnEnded(first_ms + 1792, f"{pause} {last}")


def test_listening_is_decided_once_a_second_while_no_turn_is_open() -> None:
    driver = Driver((2048, 3072))
    driver.hear(5990)
    driver.recognise("words")
    driver.hear(1100)
    listened = [told_of_words(tell.heard) for tell in driver.told]
    assert listened == [
        KeptListening(),
        KeptListening(),
        SpeechBegan(1748),
        TurnEnded(3584, "words"),
        KeptListening(),
        KeptListening(),
    ]


def test_an_ear_keeps_only_the_newest_audio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ear, "MAX_HELD_MS", 2048)
    for settings, last in ((MANUAL, 5024), (SERVER, 5024)):
        driver = Driver((0, 6000), settings=settings)
        driver.hear(last)
        driver.do(driver.ear.commit("item_1"))
        assert driver.recognise("words") == (last - 2048, last)


speech_spans = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 60)), min_size=1, max_size=6
).map(
    lambda parts: [
        (FRAME_MS * start, FRAME_MS * (start + length)) for start, length in _place(parts)
    ]
)


def _place(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    placed, at = [], 0
    for gap, length in parts:
        placed.append((at + gap, length))
        at += gap + length
    return placed


# A busy machine is no failure: hypothesis may not watch the wall clock.
unhurried = hypothesis.settings(deadline=None)


@unhurried
@given(
    speech_spans,
    st.lists(st.integers(1, 12_000), max_size=30),
    st.sampled_from([EarSettings(), SEMANTIC, MANUAL, EarSettings(hold_ms=0)]),
)
def test_how_audio_is_cut_into_appends_changes_no_decision(
    spans: list[Span], slices: list[int], settings: EarSettings
) -> None:
    length = spans[-1][1] + 3000
    whole, cut = Driver(*spans, settings=settings), Driver(*spans, settings=settings)
    for driver in (whole, cut):
        driver.answer = lambda heard: f"{heard}"
    whole.hear(length)
    cut.hear(length, slices)
    for driver in (whole, cut):
        driver.do(driver.ear.commit("item"))

    assert [tell.heard for tell in cut.told] == [tell.heard for tell in whole.told]


@unhurried
@given(speech_spans, st.sampled_from([EarSettings(), SEMANTIC, EarSettings(prefix_padding_ms=0)]))
def test_turns_never_overlap_and_hold_all_their_speech(
    spans: list[Span], settings: EarSettings
) -> None:
    driver = Driver(*spans, settings=settings)
    driver.answer = lambda heard: f"{heard[0]} {heard[1]}"
    driver.hear(spans[-1][1] + 3000)

    turns = [event for event in driver.events if isinstance(event, SpeechBegan | TurnEnded)]
    assert [type(event) for event in turns] == [SpeechBegan, TurnEnded] * (len(turns) // 2)
    last_end = 0
    heard = []
    for event in turns:
        if isinstance(event, TurnEnded):
            start, stop = map(int, event.transcript.split())
            assert last_end <= start < stop <= event.audio_end_ms
            last_end = event.audio_end_ms
            heard.append((start, stop))
    for start, stop in spans:
        if stop - start >= 96:
            assert any(begin <= start and stop <= end for begin, end in heard)
