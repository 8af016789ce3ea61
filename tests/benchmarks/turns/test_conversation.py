from __future__ import annotations

import numpy as np
import pytest
from tests.benchmarks.turns.fake_line import BeatClock, FakeLine, audio, done

from omniduplex.benchmarks.turns.conversation import PREROLL_MS, Conversation
from omniduplex.benchmarks.turns.line import LineError, LineEvent
from omniduplex.benchmarks.turns.recording import Recording
from omniduplex.benchmarks.turns.scenarios import Anchor, Cue, Echo, Scenario
from omniduplex.benchmarks.turns.spans import Kind

pytestmark = pytest.mark.anyio

CLIPS = {name: np.full(500, 0.25, dtype=np.float32) for name in ("ask", "cut", "hiss")}
ASK = Cue(clip="ask", kind=Kind.TURN, at=Anchor.START, after_ms=100)
CUT = Cue(clip="cut", kind=Kind.INTERRUPTION, at=Anchor.AGENT_START, after_ms=600, in_answer=True)


async def hold(line: FakeLine, *cues: Cue, **more: object) -> Recording:
    scenario = Scenario(name="test", cues=cues, tail_s=1.0, **more)  # type: ignore[arg-type]
    return await Conversation(line, BeatClock(), scenario, CLIPS).hold()


async def test_both_channels_are_on_one_clock() -> None:
    line = FakeLine((1000, audio("a", 3000)), (1000, done("a")))
    recording = await hold(line, ASK)
    timeline = recording.timeline()

    assert [(span.start_s, span.end_s) for span in timeline.user] == [(0.1, 0.6)]
    # Delivered with the chunk that ends at 1000 ms, read before the next one is due.
    (answer,) = timeline.agent
    assert answer.start_s == pytest.approx((1000 + PREROLL_MS) / 1000)
    assert answer.end_s == timeline.length_s == pytest.approx(2.04)
    assert bytes(line.received) == recording.user_pcm
    assert len(recording.agent_pcm()) == len(recording.user_pcm)


async def test_a_cancelled_answer_is_silent_at_once_and_its_cut_is_reported() -> None:
    line = FakeLine(
        (1000, audio("a", 9000)),
        (1900, done("a", "cancelled")),
        (2800, audio("b", 500)),
        (2800, done("b")),
    )
    recording = await hold(line, ASK, CUT)
    first, second = recording.timeline().agent

    assert (first.start_s, first.end_s) == pytest.approx((1.04, 1.9))
    assert not first.ended
    assert second.start_s == pytest.approx(2.84)
    assert recording.user[1].start_s == pytest.approx(1.64)
    cuts = [report for report in line.heard if report[3]]
    assert [(name, ms) for _, name, ms, _ in cuts] == [("a", 860)]


async def test_what_is_heard_is_reported_as_it_grows() -> None:
    line = FakeLine((1000, audio("a", 500)), (1000, done("a")))
    await hold(line, ASK)
    told = [ms for _, name, ms, _ in line.heard if name == "a"]

    assert told == sorted(set(told))
    assert told[-1] == 500
    assert len(told) >= 5


async def test_events_are_kept_with_their_moment_and_deltas_are_not() -> None:
    line = FakeLine(
        (500, LineEvent(type="input_audio_buffer.speech_started")),
        (600, LineEvent(type="response.output_audio_transcript.delta", response_id="a", text="Hm")),
        (1000, audio("a", 500)),
        (1100, LineEvent(type="error", error="bad: it went wrong")),
        (1200, done("a")),
    )
    recording = await hold(line, ASK)

    assert [(event.type, event.note) for event in recording.events] == [
        ("input_audio_buffer.speech_started", ""),
        ("error", "bad: it went wrong"),
        ("response.done", "completed"),
    ]
    assert [event.at_s for event in recording.events] == pytest.approx([0.5, 1.1, 1.2])
    assert recording.errors == ("bad: it went wrong",)
    assert recording.transcripts() == ["Hm"]


async def test_a_cue_whose_moment_never_came_is_told() -> None:
    line = FakeLine((1000, audio("a", 300)), (1000, done("a")))
    recording = await hold(line, ASK, CUT)

    assert recording.missed == ("cut",)
    assert len(recording.user) == 1


async def test_an_echo_comes_back_into_the_microphone_and_is_on_the_time_line() -> None:
    line = FakeLine((1000, audio("a", 3000)), (1000, done("a")))
    recording = await hold(line, ASK, echo=Echo(gain_db=-20.0, delay_ms=80))
    sent = np.frombuffer(recording.user_pcm, dtype="<i2")

    assert not sent[600 : 1040 + 80].any()
    assert np.abs(sent[1040 + 80 :] - 800).max() <= 1
    assert [span.kind for span in recording.timeline().user] == [Kind.TURN, Kind.ECHO]


async def test_a_background_is_under_everything_at_its_level() -> None:
    recording = await hold(FakeLine(), ASK, background="hiss", background_dbfs=-40.0)
    sent = np.frombuffer(recording.user_pcm, dtype="<i2")

    assert np.abs(sent[:100] - 328).max() <= 1
    assert np.abs(sent[100:600] - (0.25 * 32768 + 328)).max() <= 1


async def test_a_line_that_breaks_ends_the_conversation_and_leaves_its_recording() -> None:
    class Broken(FakeLine):
        async def send(self, pcm: bytes) -> None:
            await super().send(pcm)
            if len(self.received) >= 2 * 1500:
                raise LineError("the other end is gone")

    recording = await hold(Broken((1000, audio("a", 5000))), ASK)
    timeline = recording.timeline()

    assert recording.errors == ("the other end is gone",)
    assert timeline.length_s == 1.5
    assert timeline.agent[0].start_s == pytest.approx(1.04)


async def test_a_bug_is_not_taken_for_a_broken_line() -> None:
    class Buggy(FakeLine):
        async def send(self, pcm: bytes) -> None:
            raise TypeError("no such thing")

    with pytest.RaisesGroup(pytest.RaisesExc(TypeError, match="no such thing")):
        await hold(Buggy(), ASK)
