"""The conversations: what the user does, and when, seen from what the agent does."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from omniduplex.benchmarks.turns.spans import Kind

SIDE_TALK_DB = -12.0


class Anchor(StrEnum):
    """From what a cue is counted."""

    START = "start"
    USER_END = "user_end"
    """The end of the cue before."""
    AGENT_START = "agent_start"
    """The first sound of the answer to what was last asked."""
    AGENT_END = "agent_end"
    """The end of that answer's last sound, which is known once all of it has come."""


class Cue(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be heard from the user, `after_ms` from its anchor."""

    clip: str
    kind: Kind
    at: Anchor = Anchor.USER_END
    after_ms: int = 0
    level_db: float = 0.0
    in_answer: bool = False
    """It only makes sense while the agent speaks; otherwise it is left out, and told."""


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's voice in the user's microphone."""

    gain_db: float
    delay_ms: int


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation; each is a session of its own."""

    name: str
    cues: tuple[Cue, ...]
    long_answers: bool = True
    tail_s: float = 2.5
    """How long it goes on: after the last answer has begun, or after the last sound."""
    background: str | None = None
    background_dbfs: float = -50.0
    echo: Echo | None = None


def _ask(clip: str = "question_one", at: Anchor = Anchor.START, after_ms: int = 600) -> Cue:
    return Cue(clip=clip, kind=Kind.TURN, at=at, after_ms=after_ms)


def _pause(ms: int) -> tuple[Cue, Cue]:
    first = Cue(clip="part_one", kind=Kind.PART, at=Anchor.START, after_ms=600)
    return first, Cue(clip="part_two", kind=Kind.TURN, after_ms=ms)


def _during(clip: str, kind: Kind, after_ms: int, level_db: float = 0.0) -> Cue:
    return Cue(
        clip=clip,
        kind=kind,
        at=Anchor.AGENT_START,
        after_ms=after_ms,
        level_db=level_db,
        in_answer=True,
    )


def _noise(clip: str, after_ms: int, level_db: float) -> Cue:
    return Cue(clip=clip, kind=Kind.NOISE, after_ms=after_ms, level_db=level_db)


_INTERRUPTION = "interruption"

SCENARIOS = (
    Scenario(name="simple_turn", cues=(_ask(),)),
    Scenario(name="pause_short", cues=_pause(600)),
    Scenario(name="pause_long", cues=_pause(1200)),
    Scenario(
        name="back_to_back",
        cues=(_ask("question_two"), _ask("question_one", Anchor.AGENT_END, 300)),
        long_answers=False,
    ),
    Scenario(
        name="rapid_follow_up",
        cues=(
            Cue(clip="question_one", kind=Kind.LEAD, at=Anchor.START, after_ms=600),
            _ask("question_two", Anchor.USER_END, 800),
        ),
    ),
    Scenario(
        name="interrupt_early",
        cues=(_ask(), _during(_INTERRUPTION, Kind.INTERRUPTION, 600)),
    ),
    Scenario(
        name="interrupt_late",
        cues=(_ask(), _during(_INTERRUPTION, Kind.INTERRUPTION, 3500)),
    ),
    Scenario(
        name="interrupt_last_clause",
        cues=(
            _ask("question_two"),
            Cue(
                clip=_INTERRUPTION,
                kind=Kind.INTERRUPTION,
                at=Anchor.AGENT_END,
                after_ms=-1500,
                in_answer=True,
            ),
        ),
        long_answers=False,
    ),
    Scenario(
        name="backchannel_once",
        cues=(_ask(), _during("mm_hm", Kind.BACKCHANNEL, 1500)),
        tail_s=3.0,
    ),
    Scenario(
        name="backchannel_many",
        cues=(
            _ask(),
            *(
                _during(clip, Kind.BACKCHANNEL, 800 + 1300 * count)
                for count, clip in enumerate(("mm_hm", "yeah", "okay", "uh_huh", "right"))
            ),
        ),
        tail_s=3.0,
    ),
    Scenario(
        name="cough_in_answer",
        cues=(
            _ask(),
            _during("cough", Kind.VOCAL_TIC, 1500),
            _during("laugh", Kind.VOCAL_TIC, 4000),
        ),
        tail_s=3.0,
    ),
    Scenario(
        name="um_in_answer",
        cues=(_ask(), _during("um", Kind.VOCAL_TIC, 1500)),
        tail_s=3.0,
    ),
    Scenario(
        name="tics_in_silence",
        cues=(
            Cue(clip="um", kind=Kind.VOCAL_TIC, at=Anchor.START, after_ms=600),
            Cue(clip="cough", kind=Kind.VOCAL_TIC, after_ms=3000),
        ),
        tail_s=3.0,
    ),
    Scenario(
        name="side_talk_in_answer",
        cues=(_ask(), _during("side_talk", Kind.NON_DIRECTED, 1500, SIDE_TALK_DB)),
        tail_s=3.0,
    ),
    Scenario(
        name="side_talk_in_silence",
        cues=(
            Cue(
                clip="side_talk",
                kind=Kind.NON_DIRECTED,
                at=Anchor.START,
                after_ms=600,
                level_db=SIDE_TALK_DB,
            ),
        ),
        tail_s=3.5,
    ),
    Scenario(
        name="noise_only",
        cues=(
            _noise("pink_noise", 300, -17.0),
            _noise("hum", 300, -17.0),
            _noise("clicks", 300, -20.0),
        ),
        tail_s=3.0,
    ),
    Scenario(
        name="noisy_turn",
        cues=(_ask("question_two"),),
        background="pink_noise",
        background_dbfs=-43.0,
    ),
    Scenario(
        name="echo",
        cues=(_ask(),),
        tail_s=6.0,
        echo=Echo(gain_db=-20.0, delay_ms=80),
    ),
    Scenario(
        name="echo_faint",
        cues=(_ask(),),
        tail_s=6.0,
        echo=Echo(gain_db=-35.0, delay_ms=80),
    ),
)
QUICK = ("simple_turn", "interrupt_early")
