"""A scenario as it unfolds: which cue is due, by what the agent has done so far."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from omniduplex.benchmarks.turns.agent_track import AgentTrack, Piece
from omniduplex.benchmarks.turns.scenarios import Anchor, Cue, Scenario
from omniduplex.benchmarks.turns.sounds import Samples, amplitude
from omniduplex.benchmarks.turns.spans import ENDS_TURN, UserSpan
from omniduplex.benchmarks.turns.user_track import UserTrack

ANSWER_TIMEOUT_S = 10.0
"""An answer that has not begun by then is not waited for."""


class Script:
    """Plays the user's part; moments are samples since the recording began."""

    def __init__(self, scenario: Scenario, clips: Mapping[str, Samples], rate_hz: int) -> None:
        self._scenario = scenario
        self._clips = clips
        self._rate_hz = rate_hz
        self._next = 0
        self._asked_at = 0
        self._wants_answer = False
        self._last_end = 0
        self._said: list[tuple[Cue, int, int]] = []
        self.missed: list[str] = []
        """Cues for which the right moment never came."""

    @property
    def spans(self) -> list[UserSpan]:
        """What was said, and when."""
        return [
            UserSpan(
                kind=cue.kind,
                start_s=start / self._rate_hz,
                end_s=end / self._rate_hz,
                clip=cue.clip,
            )
            for cue, start, end in self._said
        ]

    def advance(self, user: UserTrack, agent: AgentTrack, horizon: int) -> None:
        """Say what is due before `horizon` samples from where the microphone is."""
        while self._next < len(self._scenario.cues):
            cue = self._scenario.cues[self._next]
            moment = self._moment(cue, agent)
            if moment is None and user.position < self._last_end + self._timeout:
                return
            if moment is not None and moment >= user.position + horizon:
                return
            self._next += 1
            start = max(moment or 0, user.position)
            if moment is None or (cue.in_answer and not agent.playing(start)):
                self.missed.append(cue.clip)
            else:
                self._say(cue, start, user)

    def over(self, position: int, agent: AgentTrack) -> bool:
        """Whether all has been said, and what comes of it has been heard."""
        if self._next < len(self._scenario.cues):
            return False
        tail = round(self._scenario.tail_s * self._rate_hz)
        if not self._wants_answer:
            return position >= self._last_end + tail
        answer = agent.onset(self._asked_at)
        if answer is None:
            return position >= self._last_end + self._timeout
        return position >= max(answer.start, self._last_end) + tail

    @property
    def _timeout(self) -> int:
        return round(ANSWER_TIMEOUT_S * self._rate_hz)

    def _moment(self, cue: Cue, agent: AgentTrack) -> int | None:
        anchor = self._anchor(cue.at, agent)
        return None if anchor is None else anchor + round(cue.after_ms / 1000 * self._rate_hz)

    def _anchor(self, anchor: Anchor, agent: AgentTrack) -> int | None:
        if anchor is Anchor.START:
            return 0
        if anchor is Anchor.USER_END:
            return self._last_end
        answer: Piece | None = agent.onset(self._asked_at)
        if answer is None or anchor is Anchor.AGENT_START:
            return None if answer is None else answer.start
        return agent.end_of(answer.response_id)

    def _say(self, cue: Cue, start: int, user: UserTrack) -> None:
        samples = self._clips[cue.clip] * np.float32(amplitude(cue.level_db))
        user.say(samples, start)
        end = start + len(samples)
        self._said.append((cue, start, end))
        self._last_end = end
        self._wants_answer = cue.kind in ENDS_TURN
        if self._wants_answer:
            self._asked_at = start
