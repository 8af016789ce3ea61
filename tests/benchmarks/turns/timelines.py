"""Time lines by hand: (kind, start, end) for the user, (start, end) for the agent, in seconds."""

from __future__ import annotations

from typing import Any

from omniduplex.benchmarks.turns.spans import AgentSpan, Kind, Timeline, UserSpan


def user(kind: Kind, start_s: float, end_s: float) -> UserSpan:
    return UserSpan(kind=kind, start_s=start_s, end_s=end_s)


def agent(start_s: float, end_s: float, **more: Any) -> AgentSpan:
    """Speech of ten words that nobody stopped."""
    return AgentSpan(start_s=start_s, end_s=end_s, **{"words": 10, "ended": True, **more})


def cut(start_s: float, end_s: float, words: int = 10) -> AgentSpan:
    """Speech that was stopped."""
    return agent(start_s, end_s, words=words, ended=False)


def timeline(*spans: UserSpan | AgentSpan, length_s: float = 20.0) -> Timeline:
    return Timeline(
        user=tuple(span for span in spans if isinstance(span, UserSpan)),
        agent=tuple(span for span in spans if isinstance(span, AgentSpan)),
        length_s=length_s,
    )
