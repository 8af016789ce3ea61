"""A player without sound: would an answer that came like this have been heard without a gap?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

PREROLLS_MS = (0, 100, 200)
MS_PER_S = 1000.0


class Chunk(NamedTuple):
    """Audio of one delta: when it was read (s, client's clock), and how long it lasts."""

    at_s: float
    ms: float


class Playback(msgspec.Struct, frozen=True, kw_only=True):
    """What one pre-roll makes of one answer."""

    preroll_ms: int
    underruns: int
    gap_ms: float
    """Silence inside the answer."""
    ends_s: float
    """When its last sample sounds, on the client's clock."""


def play(chunks: Sequence[Chunk], preroll_ms: int) -> Playback:
    """Play an answer in real time, starting a pre-roll after its first chunk was read.

    When the sound runs out before the next chunk, that one waits for the pre-roll again.

    Raises:
        ValueError: there is nothing to play.
    """
    if not chunks:
        raise ValueError("an answer without audio cannot be played")
    preroll_s = preroll_ms / MS_PER_S
    sounds_until = chunks[0].at_s + preroll_s
    underruns, gap_s = 0, 0.0
    for chunk in chunks:
        if chunk.at_s > sounds_until:
            underruns += 1
            resumes = chunk.at_s + preroll_s
            gap_s += resumes - sounds_until
            sounds_until = resumes
        sounds_until += chunk.ms / MS_PER_S
    return Playback(
        preroll_ms=preroll_ms, underruns=underruns, gap_ms=gap_s * MS_PER_S, ends_s=sounds_until
    )
