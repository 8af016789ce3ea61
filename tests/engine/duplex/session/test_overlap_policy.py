"""Overlap judgements, row by row, and what must never interrupt."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.engine.duplex.session.overlap_policy import (
    SHORT_ACKS,
    OverlapView,
    Verdict,
    is_short_ack,
    judge,
    why_not_a_turn,
    words,
)

SPOKEN = ["stop", "paris", "tomorrow", "yeah", "right", "um", "and", "i", "a"]
ADAPTIVE = OverlapView(
    policy="adaptive",
    supports_barge_in=True,
    short_ack_ms=700,
    barge_in_ms=1200,
    speech_ms=300,
)


def adaptive(**known: Any) -> Verdict:
    return judge(msgspec.structs.replace(ADAPTIVE, **known))


def test_listen_only_never_interrupts() -> None:
    verdict = adaptive(policy="listen_only", speech_ms=60_000, transcript="Stop at once!")
    assert verdict == Verdict("listen", "policy_listen_only")


def test_barge_in_on_speech_interrupts_at_the_onset() -> None:
    assert adaptive(policy="barge_in_on_speech", speech_ms=0) == Verdict(
        "barge_in", "server_vad_speech_started"
    )


def test_a_model_that_cannot_be_interrupted_is_not() -> None:
    for policy in ("barge_in_on_speech", "adaptive"):
        verdict = adaptive(policy=policy, supports_barge_in=False, speech_ms=5000)
        assert verdict == Verdict("listen", "barge_in_unsupported")

    # What would not interrupt anyway is told as it is (rows 16 and 18).
    for known in ({"speech_ms": 300}, {"speech_ms": 900}, {"transcript": "Yeah."}):
        assert adaptive(**known, supports_barge_in=False) == adaptive(**known)


@pytest.mark.parametrize(
    "known",
    [
        {"policy": "barge_in_on_speech"},
        {"transcript": "Wait, stop."},
        {"floor": 0.95},
        {"speech_ms": 1200},
    ],
)
def test_what_would_interrupt_waits_for_an_answer_that_is_said_to_its_end(
    known: dict[str, Any],
) -> None:
    assert adaptive(**known).action == "barge_in"
    verdict = adaptive(**known, interruptible=False)
    assert verdict == Verdict("listen", "response_uninterruptible")
    assert verdict.is_turn


@pytest.mark.parametrize(
    "known",
    [
        {"policy": "listen_only"},
        {"supports_barge_in": False},
        {"transcript": "Mm-hm."},
        {"transcript": "", "ended": True},
        {"level_dbfs": -40.0, "usual_level_dbfs": -22.0},
    ],
)
def test_what_interrupts_nothing_is_the_same_over_any_answer(known: dict[str, Any]) -> None:
    assert adaptive(**known, interruptible=False) == adaptive(**known)
    assert not adaptive(**known).is_turn


@pytest.mark.parametrize(
    ("speech_ms", "action", "reason"),
    [
        (100, "listen", "short_ack"),
        (700, "listen", "short_ack"),
        (701, "listen", "accumulating_overlap_speech"),
        (1199, "listen", "accumulating_overlap_speech"),
        (1200, "barge_in", "long_overlap_speech"),
    ],
)
def test_without_words_the_length_decides(speech_ms: float, action: str, reason: str) -> None:
    verdict = adaptive(speech_ms=speech_ms)
    assert (verdict.action, verdict.reason) == (action, reason)


@pytest.mark.parametrize(
    "said", ["Mm-hm.", "Yeah", "Okay, go on.", "uh-huh, uh-huh", "Right. Right!", "I see.", "好的"]
)
def test_assent_never_interrupts_however_long(said: str) -> None:
    assert adaptive(transcript=said, speech_ms=5000) == Verdict("listen", "short_ack_transcript")


@pytest.mark.parametrize(
    "said", ["Wait, stop.", "What about tomorrow?", "yeah but what about Paris", "Stop."]
)
def test_words_of_an_interruption_interrupt_at_once(said: str) -> None:
    assert adaptive(transcript=said, speech_ms=500) == Verdict("barge_in", "overlap_transcript")


def test_a_sound_that_surely_takes_the_floor_needs_no_words() -> None:
    assert adaptive(floor=0.95) == Verdict("barge_in", "floor_claimed")
    assert adaptive(floor=0.95, transcript="Can") == Verdict("barge_in", "floor_claimed")
    assert adaptive(floor=0.6) == Verdict("listen", "short_ack")


@pytest.mark.parametrize(
    "known",
    [
        {"transcript": "Yeah."},
        {"transcript": ""},
        {"ended": True},
        {"level_dbfs": -40.0, "usual_level_dbfs": -22.0},
    ],
)
def test_what_is_known_to_be_nothing_takes_no_floor(known: dict[str, Any]) -> None:
    assert adaptive(floor=0.99, **known).action != "barge_in"


def test_a_command_needs_no_length() -> None:
    assert adaptive(transcript="Stop.", speech_ms=250).action == "barge_in"


@pytest.mark.parametrize("said", ["no time.", "I'm sorry.", "and then.", "I'm a major."])
def test_a_word_or_two_in_a_short_sound_is_what_recognisers_make_of_a_hum(said: str) -> None:
    assert adaptive(transcript=said, speech_ms=450, ended=True) == Verdict("listen", "short_ack")
    assert adaptive(transcript=said, speech_ms=900, ended=True).action == "barge_in"


@pytest.mark.parametrize("known", [{"transcript": "and"}, {"transcript": "gun", "tic": 0.9}])
def test_what_would_be_no_turn_in_silence_interrupts_nothing_at_its_end(
    known: dict[str, Any],
) -> None:
    assert adaptive(speech_ms=800, ended=True, **known) == Verdict("drop", "silence_or_noise")


def test_an_acknowledgement_may_be_longer_than_what_interrupts() -> None:
    """The first row that matches decides: 16 comes before 17."""
    longer = {"short_ack_ms": 700, "barge_in_ms": 500}
    assert adaptive(speech_ms=700, **longer) == Verdict("listen", "short_ack")
    assert adaptive(speech_ms=701, **longer) == Verdict("barge_in", "long_overlap_speech")


def test_sounds_without_words_are_dropped_at_their_end() -> None:
    assert adaptive(transcript="Um, uh.") == Verdict("listen", "silence_or_noise")
    assert adaptive(transcript="", ended=True) == Verdict("drop", "silence_or_noise")


def test_speech_far_below_the_users_level_is_not_for_us() -> None:
    quiet = {"level_dbfs": -40.0, "usual_level_dbfs": -22.0}
    verdict = adaptive(transcript="Did you feed the cat?", speech_ms=1500, **quiet)
    assert verdict == Verdict("listen", "non_directed_speech")
    assert adaptive(**quiet, ended=True).action == "drop"
    assert adaptive(level_dbfs=-30.0, usual_level_dbfs=-22.0, speech_ms=1500).action == "barge_in"


SAID = msgspec.structs.replace(
    ADAPTIVE, transcript="Did you feed the cat?", level_dbfs=-24.0, brightness_db=-14.0, ended=True
)


def told_why(**known: Any) -> str | None:
    return why_not_a_turn(msgspec.structs.replace(SAID, **known))


def test_what_is_said_in_silence_is_a_turn() -> None:
    assert told_why() is None
    assert told_why(transcript="Yes.") is None
    assert told_why(level_dbfs=None, brightness_db=None) is None


def test_sounds_in_silence_are_no_turn() -> None:
    assert told_why(transcript="Um.") == "silence_or_noise"
    assert told_why(transcript="and") == "silence_or_noise"
    assert told_why(transcript="gun", tic=0.9) == "silence_or_noise"
    assert told_why(transcript="yes", tic=0.3) is None
    assert told_why(transcript="Um, what about Paris?", tic=0.9, speech_ms=1500) is None
    assert told_why(transcript="Um.", policy="barge_in_on_speech") is None
    assert told_why(transcript="", policy="barge_in_on_speech") == "silence_or_noise"


@pytest.mark.parametrize(
    ("level", "brightness", "usual", "is_far"),
    [
        (-34.0, -14.0, -23.0, True),
        (-30.0, -25.0, -23.0, True),
        (-30.0, -14.0, -23.0, False),
        (-28.0, -25.0, -23.0, False),
        (-34.0, -20.0, None, True),
        (-34.0, -14.0, None, False),  # a quiet microphone is no distance
        (-26.0, -20.0, None, False),  # nor is a dull voice
        (-34.0, None, None, False),
    ],
)
def test_who_is_far_away_speaks_to_others(
    level: float, brightness: float | None, usual: float | None, is_far: bool
) -> None:
    reason = told_why(level_dbfs=level, brightness_db=brightness, usual_level_dbfs=usual)
    assert reason == ("non_directed_speech" if is_far else None)


@given(st.lists(st.sampled_from(sorted(SHORT_ACKS)), min_size=1, max_size=12))
def test_backchannels_never_interrupt_however_many(acks: list[str]) -> None:
    assert is_short_ack(acks)
    assert adaptive(transcript=", ".join(acks), speech_ms=9000).action != "barge_in"


@given(st.text())
def test_words_are_lower_case_and_hold_no_blanks(text: str) -> None:
    for word in words(text):
        assert word == word.lower()
        assert not any(character.isspace() for character in word)


views = st.builds(
    OverlapView,
    policy=st.sampled_from(["listen_only", "barge_in_on_speech", "adaptive"]),
    supports_barge_in=st.booleans(),
    interruptible=st.booleans(),
    short_ack_ms=st.just(700.0),
    barge_in_ms=st.sampled_from([500.0, 1200.0]),
    speech_ms=st.sampled_from([0.0, 300.0, 701.0, 1200.0, 5000.0]),
    transcript=st.none() | st.lists(st.sampled_from(SPOKEN), max_size=4).map(" ".join),
    level_dbfs=st.none() | st.sampled_from([-40.0, -31.0, -23.0]),
    brightness_db=st.none() | st.sampled_from([-25.0, -14.0]),
    floor=st.none() | st.sampled_from([0.1, 0.8, 1.0]),
    tic=st.none() | st.sampled_from([0.1, 0.7, 1.0]),
    usual_level_dbfs=st.none() | st.just(-22.0),
    ended=st.booleans(),
)


@given(views)
def test_what_takes_the_floor_is_allowed_to_and_has_a_reason(view: OverlapView) -> None:
    verdict = judge(view)
    if verdict.action == "barge_in":
        assert view.supports_barge_in
        assert view.interruptible
        assert view.policy != "listen_only"
    if verdict.is_turn and view.policy == "adaptive" and view.ended and view.transcript:
        # A command is obeyed, whatever else it is.
        assert why_not_a_turn(view) is None or "stop" in view.transcript
