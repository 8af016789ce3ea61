"""A session under load: what any dialect has that the benchmark needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import msgspec

from omniduplex.benchmarks.serve.answer import StageMetrics
from omniduplex.benchmarks.turns.line import LineError
from omniduplex.clients import DuplexClientError

Backend = Literal["openai-realtime-duplex", "openai-realtime"]
# What a session may end in without ending the others.
SESSION_ERRORS = (DuplexClientError, LineError)


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a server event as is measured."""

    response_id: str | None = None
    audio_ms: float = 0.0
    text: bool = False
    status: str | None = None
    """How the answer ended; None while it goes on."""
    stages: StageMetrics = {}
    error: str | None = None


class _Runtime(msgspec.Struct, frozen=True):
    stage_metrics: dict[str, dict[str, float]] = {}


class _Metadata(msgspec.Struct, frozen=True):
    omniduplex: _Runtime = _Runtime()


class ServeSession(AbstractAsyncContextManager["ServeSession"], ABC):
    """An open session that hears 16 kHz PCM16 and answers when it is told that a turn ended."""

    turn_end: str
    """Which command ends a turn, in words: the origin of the times."""

    @abstractmethod
    async def send(self, pcm: bytes) -> None:
        """Send what the microphone picked up."""

    @abstractmethod
    async def end_turn(self) -> None:
        """Ask for the answer to what was said."""

    @abstractmethod
    def events(self) -> AsyncIterator[Arrival]:
        """Everything that is measured, from now on."""

    @abstractmethod
    async def report_heard(self, response_id: str | None, ms: float) -> None:
        """Tell that an answer was heard to its end, if the dialect wants to know."""


def stage_metrics(metadata: dict[str, Any] | None) -> StageMetrics:
    """What a server's stages say in the metadata of `response.done`, if it tells."""
    try:
        return msgspec.convert(metadata or {}, _Metadata).omniduplex.stage_metrics
    except msgspec.ValidationError:  # another server's metadata, under our name
        return {}
