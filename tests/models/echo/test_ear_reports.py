"""What the echo ear tells of speech that goes on, and of turns that a commit or clear overtakes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.echo.driver import EchoDriver, silence, tone

from omniduplex.engine.duplex.model_events import (
    Speak,
    UserSpeechProgress,
    UserSpeechStarted,
    UserTranscript,
    UserTurnEnded,
)
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.session_state import DEFAULT_SILENCE_MS

HALF_SCALE_DBFS = -9.0  # the RMS of the driver's tone


def watch(echo: EchoDriver, active: bool) -> None:
    echo.do(echo.state.plan_overlap(echo.fence, active=active))


def test_speech_is_told_of_unit_by_unit_while_that_is_wanted() -> None:
    echo = EchoDriver()
    echo.append(tone(80))
    watch(echo, True)
    echo.append(tone(160) + silence(80) + tone(80))
    watch(echo, False)
    echo.append(tone(160))

    assert echo.of(UserSpeechProgress) == [
        UserSpeechProgress(ms, HALF_SCALE_DBFS) for ms in (160, 240, 320)
    ]


def test_the_level_is_that_of_the_loud_part() -> None:
    echo = EchoDriver()
    watch(echo, True)
    echo.append(tone(80) + silence(160) + tone(80))
    assert [event.level_dbfs for event in echo.of(UserSpeechProgress)] == [HALF_SCALE_DBFS] * 2


def test_words_so_far_are_told_where_the_deployment_wants_them() -> None:
    echo = EchoDriver(EchoOptions(early_words=True))
    watch(echo, True)
    echo.append(tone(240))
    assert [event.transcript for event in echo.of(UserSpeechProgress)] == [
        "tone 440 Hz 0.1 s",
        "tone 440 Hz 0.2 s",
        "tone 440 Hz 0.2 s",
    ]


@pytest.mark.parametrize("order", ["commit", "clear"])
def test_a_report_that_an_order_overtook_is_about_no_turn(order: str) -> None:
    echo = EchoDriver()
    watch(echo, True)
    echo.held = True
    echo.append(tone(400))
    echo.commit() if order == "commit" else echo.clear()
    echo.deliver()

    assert echo.of(UserSpeechStarted) == []
    assert echo.of(UserSpeechProgress) == []
    echo.append(tone(80))
    echo.deliver()
    assert echo.of(UserSpeechStarted) == [UserSpeechStarted(400)]


def test_a_turn_whose_end_is_under_way_belongs_to_the_commit() -> None:
    echo = EchoDriver()
    echo.held = True
    echo.append(tone(400) + silence(560) + tone(160, hz=220))
    echo.commit("item_1")
    echo.deliver()

    assert echo.of(UserTurnEnded) == []
    assert echo.of(UserTranscript) == [
        UserTranscript("item_1", "tone 440 Hz 0.4 s tone 220 Hz 0.2 s", 0.56)
    ]


def test_a_turn_that_the_model_answers_by_itself_is_answered_once() -> None:
    echo = EchoDriver(EchoOptions(self_start=True))
    echo.held = True
    echo.append(tone(400) + silence(560))
    echo.commit("item_1")
    echo.deliver()
    assert len(echo.of(Speak)) == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("speak"), st.integers(1, 5)),
        st.tuples(st.just("hush"), st.integers(1, 8)),
        st.tuples(st.sampled_from(["deliver", "commit", "clear"])),
    ),
    max_size=30,
)


class Talk:
    """A session whose reports wait until they are delivered, and what is to be heard of it."""

    def __init__(self) -> None:
        self.echo = EchoDriver()
        watch(self.echo, True)
        self.echo.held = True
        self.now_ms = self.sealed_ms = 0
        self.utterances = self.may_be_lost = 0
        self._quiet_ms = DEFAULT_SILENCE_MS

    def speak(self, units: int) -> None:
        self.utterances += self._quiet_ms >= DEFAULT_SILENCE_MS
        self._quiet_ms = 0
        self._append(tone(units * 80))

    def hush(self, units: int) -> None:
        self._quiet_ms += units * 80
        self._append(silence(units * 80))

    def commit(self) -> None:
        self.echo.commit()
        self._seal()

    def clear(self) -> None:
        self.echo.clear()
        self.may_be_lost = self.utterances
        self._seal()

    def deliver(self) -> None:
        before = len(self.echo.events)
        self.echo.deliver()
        for event in self.echo.events[before:]:
            if isinstance(event, UserSpeechStarted):
                assert event.audio_start_ms >= self.sealed_ms
            if isinstance(event, UserTurnEnded):
                assert event.audio_end_ms > self.sealed_ms

    def _append(self, pcm: bytes) -> None:
        self.echo.append(pcm)
        self.now_ms += len(pcm) // 32

    def _seal(self) -> None:
        self.sealed_ms = self.now_ms
        self._quiet_ms = DEFAULT_SILENCE_MS


@given(STEPS)
def test_every_utterance_is_told_once_and_no_event_is_late(
    steps: list[tuple[str, int] | tuple[str]],
) -> None:
    talk = Talk()
    for name, *units in steps:
        getattr(talk, name)(*units)
    talk.hush(10)
    talk.deliver()

    texts = [event.transcript for event in talk.echo.of(UserTurnEnded)]
    texts += [event.transcript for event in talk.echo.of(UserTranscript)]
    told = sum(text.count("tone") for text in texts)
    assert talk.utterances - talk.may_be_lost <= told <= talk.utterances
