from __future__ import annotations

import pytest
from tests.benchmarks.serve.fake_session import FakeSession
from tests.benchmarks.stepping_clock import SteppingClock

from omniduplex.benchmarks.frames import APPEND_BYTES
from omniduplex.benchmarks.questions import Question
from omniduplex.benchmarks.serve.caller import Caller
from omniduplex.benchmarks.serve.session import Arrival
from omniduplex.benchmarks.turns.line import LineError

pytestmark = pytest.mark.anyio

QUESTION = Question(name="q", pcm=b"\x01\x00" * 1600)  # 100 ms
ANSWER = (
    (0.0, Arrival(response_id="r", text=True)),
    (0.0, Arrival(response_id="r", audio_ms=80.0)),
    (0.0, Arrival(response_id="r", audio_ms=80.0)),
    (0.0, Arrival(response_id="r", status="completed", stages={"0": {"tts_s": 0.1, "at_x": 9.0}})),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_all_questions_are_asked_answered_and_heard() -> None:
    clock = SteppingClock()
    session = FakeSession(clock, ANSWER)
    call = await Caller(session, clock).call([QUESTION, QUESTION])
    assert call.error is None
    assert [answer.status for answer in call.answers] == ["completed", "completed"]
    for answer in call.answers:
        assert (answer.audio_ms, len(answer.gaps_ms)) == (160.0, 1)
        assert answer.stages == {"0": {"tts_s": 0.1}}
    assert session.heard == [("r", 160.0)] * 2
    assert session.closed


async def test_the_whole_question_is_sent_before_its_turn_ends() -> None:
    clock = SteppingClock()
    session = FakeSession(clock, ANSWER)
    await Caller(session, clock).call([QUESTION])
    sent = b"".join(session.sent)[: session.sent_at_turn_end[0]]
    assert QUESTION.pcm in sent
    assert all(len(append) <= APPEND_BYTES for append in session.sent)


async def test_an_error_ends_the_session_and_is_told() -> None:
    clock = SteppingClock()
    session = FakeSession(clock, [(0.0, Arrival(error="busy: later"))])
    call = await Caller(session, clock).call([QUESTION, QUESTION])
    assert [answer.status for answer in call.answers] == ["error"]
    assert call.error == "busy: later"


async def test_a_session_that_ends_early_is_told() -> None:
    clock = SteppingClock()
    call = await Caller(FakeSession(clock, None), clock).call([QUESTION])
    assert [answer.status for answer in call.answers] == ["no_answer"]
    assert call.error == "the session ended before the answer did"


async def test_a_refused_session_has_no_answers() -> None:
    clock = SteppingClock()
    session = FakeSession(clock, ANSWER, refusal=LineError("cannot connect"))
    call = await Caller(session, clock).call([QUESTION])
    assert (call.answers, call.error, call.latest_chunk_ms) == ((), "cannot connect", 0.0)


async def test_a_bug_is_not_taken_for_the_end_of_a_session() -> None:
    clock = SteppingClock()
    session = FakeSession(clock, ANSWER, refusal=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await Caller(session, clock).call([QUESTION])
