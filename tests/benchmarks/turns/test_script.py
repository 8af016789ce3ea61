from __future__ import annotations

import numpy as np

from omniduplex.benchmarks.turns.agent_track import AgentTrack
from omniduplex.benchmarks.turns.scenarios import Anchor, Cue, Scenario
from omniduplex.benchmarks.turns.script import ANSWER_TIMEOUT_S, Script
from omniduplex.benchmarks.turns.spans import Kind
from omniduplex.benchmarks.turns.user_track import UserTrack

RATE_HZ = 1000  # a sample is a ms
CHUNK = 20
PREROLL = 40
CLIPS = {name: np.full(500, 0.5, dtype=np.float32) for name in ("ask", "cut", "mhm")}
ASK = Cue(clip="ask", kind=Kind.TURN, at=Anchor.START, after_ms=100)


def during(clip: str, kind: Kind, after_ms: int, at: Anchor = Anchor.AGENT_START) -> Cue:
    return Cue(clip=clip, kind=kind, at=at, after_ms=after_ms, in_answer=True)


class Stage:
    """A script, and an agent in the test's hand."""

    def __init__(self, *cues: Cue, tail_s: float = 1.0) -> None:
        scenario = Scenario(name="test", cues=cues, tail_s=tail_s)
        self.script = Script(scenario, CLIPS, RATE_HZ)
        self.user = UserTrack()
        self.agent = AgentTrack(PREROLL)

    def run_to(self, moment: int) -> None:
        while self.user.position < moment:
            self.script.advance(self.user, self.agent, CHUNK)
            self.user.take(CHUNK)

    def speak(self, at: int, samples: int, response_id: str = "a", *, done: bool = True) -> None:
        """Run up to `at`, and let the agent begin a pre-roll later."""
        self.run_to(at)
        self.agent.arrive(response_id, bytes(2 * samples), at)
        if done:
            self.agent.done(response_id)

    @property
    def said(self) -> list[tuple[str, float, float]]:
        return [(span.clip, span.start_s, span.end_s) for span in self.script.spans]

    def over_at(self) -> int:
        """When the script is over, with the agent as it is."""
        while not self.script.over(self.user.position, self.agent):
            self.script.advance(self.user, self.agent, CHUNK)
            self.user.take(CHUNK)
        return self.user.position


def test_a_cue_is_said_to_the_sample_wherever_chunks_begin() -> None:
    stage = Stage(Cue(clip="ask", kind=Kind.TURN, at=Anchor.START, after_ms=107))
    stage.run_to(1000)
    assert stage.said == [("ask", 0.107, 0.607)]


def test_a_cue_can_follow_the_one_before() -> None:
    stage = Stage(ASK, Cue(clip="mhm", kind=Kind.TURN, after_ms=300))
    stage.run_to(1500)
    assert stage.said == [("ask", 0.1, 0.6), ("mhm", 0.9, 1.4)]


def test_a_cue_can_wait_for_the_answer_to_begin() -> None:
    stage = Stage(ASK, during("cut", Kind.INTERRUPTION, 600))
    stage.speak(2000, 3000)
    stage.run_to(4000)
    assert stage.said[1] == ("cut", 2.64, 3.14)


def test_an_old_answer_is_not_the_answer_to_an_interruption() -> None:
    stage = Stage(ASK, during("cut", Kind.INTERRUPTION, 600), during("mhm", Kind.BACKCHANNEL, 100))
    stage.speak(2000, 1500)
    stage.speak(5000, 2000, "b")
    stage.run_to(6000)
    assert stage.said[2] == ("mhm", 5.14, 5.64)


def test_a_cue_can_be_placed_before_the_end_of_an_answer() -> None:
    stage = Stage(ASK, during("cut", Kind.INTERRUPTION, -1000, Anchor.AGENT_END))
    stage.speak(2000, 3000, done=False)
    stage.run_to(2500)
    stage.agent.done("a")
    stage.run_to(5000)
    assert stage.said[1] == ("cut", 4.04, 4.54)


def test_an_end_that_is_known_late_is_met_at_once() -> None:
    stage = Stage(ASK, during("cut", Kind.INTERRUPTION, -1500, Anchor.AGENT_END))
    stage.speak(2000, 3000, done=False)
    stage.run_to(4000)
    stage.agent.done("a")
    stage.run_to(5000)
    assert stage.said[1] == ("cut", 4.0, 4.5)


def test_what_belongs_into_an_answer_is_left_out_when_the_answer_is_over() -> None:
    stage = Stage(ASK, during("mhm", Kind.BACKCHANNEL, 2000))
    stage.speak(2000, 1000)
    stage.run_to(5000)
    assert (len(stage.said), stage.script.missed) == (1, ["mhm"])


def test_what_waits_for_an_answer_is_left_out_when_none_comes() -> None:
    stage = Stage(ASK, during("mhm", Kind.BACKCHANNEL, 500), during("mhm", Kind.BACKCHANNEL, 900))
    stage.run_to(600 + round(ANSWER_TIMEOUT_S * RATE_HZ) + 100)
    assert (len(stage.said), stage.script.missed) == (1, ["mhm", "mhm"])
    assert stage.script.over(stage.user.position, stage.agent)


def test_it_is_over_a_while_after_the_last_answer_began() -> None:
    stage = Stage(ASK, tail_s=1.5)
    stage.speak(2000, 5000)
    assert stage.over_at() == 3540


def test_it_is_over_a_while_after_the_last_sound_that_wants_no_answer() -> None:
    stage = Stage(ASK, during("mhm", Kind.BACKCHANNEL, 500), tail_s=1.5)
    stage.speak(2000, 9000)
    assert stage.over_at() == 2540 + 500 + 1500


def test_an_answer_that_does_not_come_is_not_waited_for_longer() -> None:
    assert Stage(ASK).over_at() == 600 + ANSWER_TIMEOUT_S * RATE_HZ


def test_an_answer_that_began_before_the_user_had_ended_still_leaves_the_whole_tail() -> None:
    stage = Stage(ASK, tail_s=1.0)
    stage.speak(200, 5000)
    assert stage.over_at() == 1600


def test_a_level_changes_what_is_sent() -> None:
    stage = Stage(Cue(clip="ask", kind=Kind.TURN, at=Anchor.START, level_db=-20.0))
    stage.run_to(100)
    sent = np.frombuffer(bytes(stage.user.pcm), dtype="<i2")
    assert np.all(np.abs(sent - 0.05 * 32768) < 1)
