"""One judge: an ear and the appends of a client that tell the same facts get the same decisions."""

from itertools import accumulate

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver
from tests.engine.duplex.session.over_an_answer import (
    TO_THE_END,
    answering,
    decisions,
    statuses,
)

from omniduplex.engine.duplex.model_events import UserSpeechProgress

EAR = msgspec.structs.replace(LISTENING, overlap_policy="adaptive")
APPENDS = msgspec.structs.replace(BY_HAND, overlap_policy="adaptive")


def each_new_one(told: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [one for number, one in enumerate(told) if told[:number][-1:] != [one]]


@given(
    pieces=st.lists(st.sampled_from([100, 300, 500]), min_size=1, max_size=6),
    words=st.sampled_from([None, "Yeah, go on.", "Um.", "Paris", "Wait, stop", "and then he went"]),
    to_the_end=st.booleans(),
)
def test_the_same_speech_leads_to_the_same_decisions(
    pieces: list[int], words: str | None, *, to_the_end: bool
) -> None:
    """Its words are known with the last piece of it."""
    ask = TO_THE_END if to_the_end else None
    ear, appends = SessionDriver(EAR), SessionDriver(APPENDS)
    for driver in (ear, appends):
        answering(driver, ask)
    ear.user_speaks()
    last = len(pieces) - 1
    for number, (ms, so_far_ms) in enumerate(zip(pieces, accumulate(pieces), strict=True)):
        if statuses(ear):
            break
        known = words if number == last else None
        ear.model_says(UserSpeechProgress(so_far_ms, -20.0, known))
        appends.append(ms, transcript=known)

    assert decisions(ear) == each_new_one(decisions(appends))
    assert statuses(ear) == statuses(appends)
