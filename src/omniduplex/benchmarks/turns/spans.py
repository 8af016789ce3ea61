"""Who speaks when: what all measures of turn taking are computed from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

TICK_S = 0.2
"""Length of a tick in tau-voice."""


class Kind(StrEnum):
    """What a stretch of the user's channel means."""

    TURN = "turn"
    """It ends a turn, and wants an answer."""
    PART = "part"
    """Its turn goes on after a pause: an answer in the pause takes the floor."""
    LEAD = "lead"
    """A whole sentence that another follows at once: an answer in between is no mistake."""
    INTERRUPTION = "interruption"
    BACKCHANNEL = "backchannel"
    VOCAL_TIC = "vocal_tic"
    NON_DIRECTED = "non_directed"
    NOISE = "noise"
    ECHO = "echo"
    """The agent's own voice comes back."""


FLOOR = frozenset({Kind.TURN, Kind.PART, Kind.LEAD, Kind.INTERRUPTION})
"""Speech with which the user takes the floor."""
ENDS_TURN = frozenset({Kind.TURN, Kind.INTERRUPTION})
"""After it the user waits for an answer."""
DISTURBANCES = frozenset(Kind) - FLOOR
"""Nothing that the agent should stop for, or answer."""
NOT_SPEECH = frozenset({Kind.NOISE, Kind.ECHO})


class UserSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the user's channel; seconds from the recording's beginning."""

    kind: Kind
    start_s: float
    end_s: float
    clip: str = ""


class AgentSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the agent's speech, as a listener hears it."""

    start_s: float
    end_s: float
    words: int
    """As many as its share of the transcript says; without one, by its length."""
    ended: bool = False
    """The answer was over: nobody stopped it."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation; spans of either side are in order of their start."""

    user: tuple[UserSpan, ...]
    agent: tuple[AgentSpan, ...]
    length_s: float

    def speaking_at(self, moment_s: float) -> AgentSpan | None:
        """What the agent says at a moment."""
        found = (span for span in self.agent if span.start_s <= moment_s < span.end_s)
        return next(found, None)

    def floor_after(self, span: UserSpan) -> float:
        """When the user next takes the floor, or the end of the recording."""
        later = (
            other.start_s
            for other in self.user
            if other.kind in FLOOR and other.start_s >= span.end_s
        )
        return min(later, default=self.length_s)

    def started_between(self, from_s: float, to_s: float) -> list[AgentSpan]:
        """What the agent began to say from one moment to before another."""
        return [span for span in self.agent if from_s <= span.start_s < to_s]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A user's whole turn: parts with pauses between them, and what ends it."""

    spans: tuple[UserSpan, ...]

    @property
    def start_s(self) -> float:
        """When it begins."""
        return self.spans[0].start_s

    @property
    def end_s(self) -> float:
        """When nothing more of it comes."""
        return self.spans[-1].end_s

    @property
    def pauses(self) -> list[tuple[float, float]]:
        """The silences inside."""
        pairs = zip(self.spans, self.spans[1:], strict=False)
        return [(before.end_s, after.start_s) for before, after in pairs]


def turns(user: Iterable[UserSpan]) -> list[Turn]:
    """The turns that a `TURN` ends, each with the parts before it."""
    found: list[Turn] = []
    parts: list[UserSpan] = []
    for span in user:
        if span.kind is Kind.PART:
            parts.append(span)
        elif span.kind is Kind.TURN:
            found.append(Turn(spans=(*parts, span)))
            parts = []
    return found


def tick_range(start_s: float, end_s: float, tick_s: float = TICK_S) -> range:
    """The ticks that a stretch touches."""
    # A moment on the border of two ticks is a float, and may lie on either side of it.
    return range(math.floor(round(start_s / tick_s, 6)), math.ceil(round(end_s / tick_s, 6)))


def ticks(
    spans: Sequence[UserSpan] | Sequence[AgentSpan], length_s: float, tick_s: float = TICK_S
) -> list[bool]:
    """For each tick of a recording, whether there is any speech in it."""
    found = [False] * len(tick_range(0.0, length_s, tick_s))
    for span in spans:
        for index in tick_range(span.start_s, min(span.end_s, length_s), tick_s):
            found[index] = True
    return found
