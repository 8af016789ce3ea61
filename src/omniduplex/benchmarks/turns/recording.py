"""What was recorded on the two channels, and who spoke when on them."""

from __future__ import annotations

import wave
from pathlib import Path

import msgspec
import numpy as np

from omniduplex.audio.pcm import INT16, SAMPLE_BYTES, float32_to_int16
from omniduplex.benchmarks.turns.agent_track import AgentTrack
from omniduplex.benchmarks.turns.spans import AgentSpan, Kind, Timeline, UserSpan
from omniduplex.benchmarks.turns.speech import FRAME_S, loud_frames

AGENT_DBFS = -45.0
"""Our loudspeaker is silent when the agent is: what is louder is speech."""
MERGE_S = 0.5
"""A gap inside an answer that is no longer is a breath (Full-Duplex-Bench v1.5, model gaps)."""
# Slow speech, where there is no transcript to count words in.
WORDS_PER_S = 2.5


class TimedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """When a server event was read; seconds from the recording's beginning."""

    at_s: float
    type: str
    response_id: str | None = None
    note: str = ""
    audio_ms: float | None = None
    interrupted_after_ms: float | None = None
    """These are as in `LineEvent`."""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Both channels of one conversation on one clock, and all that came with them."""

    rate_hz: int
    user_pcm: bytes
    user: tuple[UserSpan, ...]
    agent: AgentTrack
    echo: bool
    missed: tuple[str, ...]
    latest_chunk_ms: float
    """How late the latest chunk of the microphone was sent."""
    events: tuple[TimedEvent, ...]
    errors: tuple[str, ...]

    @property
    def length(self) -> int:
        """Samples of either channel."""
        return len(self.user_pcm) // SAMPLE_BYTES

    def agent_pcm(self) -> bytes:
        """The agent's channel."""
        return float32_to_int16(self.agent.samples(0, self.length))

    def timeline(self) -> Timeline:
        """Who spoke when: the user by the script, the agent by its level."""
        agent = agent_spans(self.agent, self.length, self.rate_hz)
        user = self.user
        if self.echo and agent:
            echo = UserSpan(
                kind=Kind.ECHO, start_s=agent[0].start_s, end_s=agent[-1].end_s, clip="echo"
            )
            user = tuple(sorted((*user, echo), key=lambda span: span.start_s))
        return Timeline(user=user, agent=agent, length_s=self.length / self.rate_hz)

    def transcripts(self) -> list[str]:
        """The words of every answer, heard or not."""
        texts = ["".join(answer.text).strip() for answer in self.agent.answers.values()]
        return [text for text in texts if text]


def agent_spans(track: AgentTrack, length: int, rate_hz: int) -> tuple[AgentSpan, ...]:
    """Where the agent is heard, answer by answer: two answers are never one stretch."""
    found: list[AgentSpan] = []
    for response_id in dict.fromkeys(piece.response_id for piece in track.pieces):
        found += _spans_of(response_id, track, length, rate_hz)
    return tuple(sorted(found, key=lambda span: span.start_s))


def _spans_of(response_id: str, track: AgentTrack, length: int, rate_hz: int) -> list[AgentSpan]:
    pieces = [piece for piece in track.pieces if piece.response_id == response_id]
    start, end = pieces[0].start, min(pieces[-1].end, length)
    if start >= end:
        return []
    answer = track.answers[response_id]
    loud = loud_frames(track.samples(start, end - start), rate_hz, AGENT_DBFS)
    stretches = _merged([start / rate_hz + frame * FRAME_S for frame in loud])
    if stretches and pieces[-1].end >= length:
        # It was still speaking when the recording ended.
        stretches[-1] = (stretches[-1][0], length / rate_hz)
    words = len("".join(answer.text).split()) / max(answer.received / rate_hz, FRAME_S)
    return [
        AgentSpan(
            start_s=start_s,
            end_s=end_s,
            words=max(1, round((words or WORDS_PER_S) * (end_s - start_s))),
            ended=not answer.cut or (start_s, end_s) != stretches[-1],
        )
        for start_s, end_s in stretches
    ]


def _merged(frames: list[float]) -> list[tuple[float, float]]:
    """Stretches of loud frames, by the moments at which the frames begin."""
    found: list[tuple[float, float]] = []
    for at_s in frames:
        if found and at_s - found[-1][1] <= MERGE_S:
            found[-1] = (found[-1][0], at_s + FRAME_S)
        else:
            found.append((at_s, at_s + FRAME_S))
    return found


def write_stereo(path: Path, left: bytes, right: bytes, rate_hz: int) -> None:
    """Write a WAV of two channels of PCM16; the shorter is followed by silence."""
    size = max(len(left), len(right))
    channels = [np.frombuffer(pcm.ljust(size, b"\0"), dtype=INT16) for pcm in (left, right)]
    with wave.open(str(path), "wb") as writer:
        writer.setnchannels(len(channels))
        writer.setsampwidth(SAMPLE_BYTES)
        writer.setframerate(rate_hz)
        writer.writeframes(np.stack(channels, axis=1).tobytes())
