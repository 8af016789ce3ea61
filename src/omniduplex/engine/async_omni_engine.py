"""The engine of turn requests."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.channel import ChannelClosed
from omniduplex.engine.messages import AbortTurn, AddTurn
from omniduplex.engine.omni_engine_base import OmniEngineBase
from omniduplex.engine.orchestrator import Orchestrator
from omniduplex.engine.turn_audio import at_rate
from omniduplex.engine.turn_plugin import Turn, TurnFeatures, load_turn_plugin
from omniduplex.engine.turns import (
    AnswerRequest,
    SpeechRequest,
    TranscriptionRequest,
    TurnChunk,
    TurnFailure,
    TurnRefused,
    TurnRequest,
    checked,
)
from omniduplex.engine.unread_parts import UnreadParts, is_last

TurnOrchestratorT = TypeVar("TurnOrchestratorT", bound=Orchestrator)
OnPart = Callable[[TurnChunk | TurnFailure], None]


class StageFailed(Exception):  # noqa: N818 - it reports the stage's failure, not the caller's
    """A turn was not finished: a stage could not, or nobody read what it made."""


class _Slot:
    """One of the places for turns; two threads may give it back, and it is given back once."""

    def __init__(self, room: threading.BoundedSemaphore) -> None:
        self._room = room
        self._is_free = threading.Lock()

    def free(self) -> None:
        """Let another turn have it."""
        if self._is_free.acquire(blocking=False):
            self._room.release()


class _Reader:
    """What a caller keeps of its turn."""

    def __init__(self, unread: UnreadParts) -> None:
        self._unread = unread
        self.ended = False

    def read(self, part: TurnChunk | TurnFailure) -> TurnChunk:
        """Note whether the part is the last; raises `StageFailed` for a failure."""
        self._unread.taken(part)
        self.ended = is_last(part)
        if isinstance(part, TurnFailure):
            raise StageFailed(part.reason)
        return part


class TurnEngineBase(OmniEngineBase[TurnOrchestratorT]):
    """Turn requests over any orchestrator that admits them."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        super().__init__(pipeline)
        self._turn_plugin = load_turn_plugin(pipeline)
        self._room = threading.BoundedSemaphore(pipeline.max_turns)

    @property
    def turn_features(self) -> TurnFeatures:
        """Which turn requests the deployment takes."""
        return self._turn_plugin.features if self._turn_plugin else TurnFeatures()

    async def generate(self, request: TurnRequest) -> AsyncGenerator[TurnChunk, None]:
        """Run one turn and yield its chunks; closing the generator early aborts it.

        A turn takes one of `max_turns` places until its stages are done with it, however much of
        it is still to be read.

        Raises:
            TurnRefused: the deployment does not take it, or `max_turns` run already.
            StageFailed: a stage answered with an error or died, or too much was left unread.
        """
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[TurnChunk | TurnFailure] = asyncio.Queue()

        def take(part: TurnChunk | TurnFailure) -> None:
            loop.call_soon_threadsafe(parts.put_nowait, part)

        with self._admitted() as slot:
            turn_id, turn = await asyncio.to_thread(self._create, request)
            with self._running(turn_id, turn, slot, take) as reader:
                while not reader.ended:
                    yield reader.read(await parts.get())

    def stream(self, request: TurnRequest) -> Generator[TurnChunk, None, None]:
        """Do what `generate` does, for a caller without a loop: it blocks between chunks."""
        parts: SimpleQueue[TurnChunk | TurnFailure] = SimpleQueue()
        with (
            self._admitted() as slot,
            self._running(*self._create(request), slot, parts.put) as reader,
        ):
            while not reader.ended:
                yield reader.read(parts.get())

    async def active_turns(self) -> int:
        """How many turns run; as the engine loop answers, it is alive."""
        return await self.call(self._count_turns())

    async def _count_turns(self) -> int:
        return self.orchestrator.active_turns

    @contextmanager
    def _admitted(self) -> Iterator[_Slot]:
        if not self._room.acquire(blocking=False):
            limit = self.pipeline.max_turns
            raise TurnRefused("rate_limit_exceeded", f"{limit} requests run already; try later")
        slot = _Slot(self._room)
        try:
            yield slot
        finally:
            slot.free()

    def _create(self, request: TurnRequest) -> tuple[str, Turn]:
        plugin = self._turn_plugin
        if plugin is None or not _is_taken(request, plugin.features):
            kind = type(request).__name__
            raise TurnRefused("unsupported", f"{self.pipeline.model} takes no {kind}")
        request = checked(request)
        is_fast_or_slow = isinstance(request, SpeechRequest) and request.speed != 1.0
        if is_fast_or_slow and not plugin.features.supports_speed:
            message = f"{self.pipeline.model} speaks at one speed"
            raise TurnRefused("unsupported", message, param="speed")
        turn_id = f"turn-{uuid.uuid4().hex}"
        return turn_id, plugin.create_turn(turn_id, at_rate(request, plugin.input_rate_hz))

    @contextmanager
    def _running(self, turn_id: str, turn: Turn, slot: _Slot, on_part: OnPart) -> Iterator[_Reader]:
        unread = UnreadParts(on_part, partial(self._abort, turn_id), slot.free)
        reader = _Reader(unread)
        try:
            self.send(AddTurn(turn_id, turn, unread.put))
        except ChannelClosed as error:
            raise StageFailed("the engine is not running") from error
        try:
            yield reader
        finally:
            if not reader.ended:
                self._abort(turn_id)

    def _abort(self, turn_id: str) -> None:
        """End a turn if it still runs."""
        with suppress(ChannelClosed):  # nothing runs any more
            self.send(AbortTurn(turn_id))


def _is_taken(request: TurnRequest, features: TurnFeatures) -> bool:
    match request:
        case AnswerRequest():
            return features.supports_chat_completions
        case SpeechRequest():
            return features.supports_speech
        case TranscriptionRequest():
            return features.supports_transcription


class AsyncOmniEngine(TurnEngineBase[Orchestrator]):
    """The turn-based engine."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        super().__init__(pipeline)
        if pipeline.turn_plugin is None or pipeline.session_mode != "turn":
            raise ConfigError(
                f"pipeline {pipeline.name!r} is not deployed for turn requests: session_mode: turn"
            )

    def _create_orchestrator(self) -> Orchestrator:
        return Orchestrator(self.pipeline)
