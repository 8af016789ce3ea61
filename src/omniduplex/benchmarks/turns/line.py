"""A line to one session: what any dialect has that a conversation needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal

import msgspec

Dialect = Literal["duplex", "openai"]


class LineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A server event, as far as it can be heard or seen on a time line."""

    type: str
    """Its wire type."""
    response_id: str | None = None
    audio: bytes = b""
    """PCM16 at the line's rate."""
    text: str = ""
    """Words of the transcript."""
    ended: bool = False
    """The response is over."""
    silences: bool = False
    """The player stops: this response, or all when it names none."""
    note: str = ""
    """What a reader of the report wants to know of it."""
    audio_ms: float | None = None
    """Up to where in the audio the server decided this."""
    interrupted_after_ms: float | None = None
    """The speech it had heard when it took an overlap for an interruption."""
    error: str | None = None


class LineError(Exception):
    """The other end refused, or went away."""


class Line(AbstractAsyncContextManager["Line"], ABC):
    """An open session, 16 bit mono both ways at `rate_hz`; ends with its context."""

    rate_hz: int
    policy_in_force: str | None = None
    """What the session does about overlapping speech, where it says so."""

    @abstractmethod
    async def send(self, pcm: bytes) -> None:
        """Send what the microphone picked up."""

    @abstractmethod
    def events(self) -> AsyncIterator[LineEvent]:
        """Everything that comes, from now on."""

    @abstractmethod
    async def report_heard(self, response_id: str, ms: float, *, cut_off: bool) -> None:
        """Tell how much of an answer was heard, if the dialect wants to know."""


class SessionWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation asks of its session."""

    model: str
    policy: str
    vad: Literal["server_vad", "semantic_vad"]
    instructions: str
    api_key: str | None = None

    @property
    def interrupts(self) -> bool:
        """Whether the user's speech may stop an answer."""
        return self.policy != "listen_only"
