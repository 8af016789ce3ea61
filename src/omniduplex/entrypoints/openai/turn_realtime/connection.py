"""One connection of the turn-based Realtime handler: the only shell around its conversation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from omniduplex.engine.async_omni_engine import StageFailed
from omniduplex.engine.turns import TranscriptionRequest, TurnRefused
from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.duplex.websocket import (
    GOING_AWAY,
    NORMAL_CLOSURE,
    ClientGone,
    ClientSocket,
    Farewell,
)
from omniduplex.entrypoints.openai.turn_realtime.conversation import TurnConversation
from omniduplex.entrypoints.openai.turn_realtime.effects import Ask, Effect, Emit, Hear, Stop
from omniduplex.entrypoints.openai.turn_realtime.outbox import Outbox
from omniduplex.entrypoints.openai.turn_realtime.prompt import answer_request
from omniduplex.entrypoints.openai.turn_realtime.sound import ShownEvent, render
from omniduplex.protocol.duplex import Dialect, DuplexError, encode_event

logger = logging.getLogger(__name__)

STOPPED = Farewell(None, GOING_AWAY, "shutdown")
IDLE = Farewell(None, NORMAL_CLOSURE, "idle_ttl_expired")


class TurnConnection:
    """Hands a client's events to its conversation and does what that wants.

    `stopping` is set when the server stops: the response that is being made is still finished.
    """

    def __init__(
        self,
        omni: AsyncOmniBase[Any],
        socket: ClientSocket,
        conversation: TurnConversation,
        *,
        dialect: Dialect,
        new_id: Callable[[str], str],
        stopping: asyncio.Event,
    ) -> None:
        self._omni = omni
        self._socket = socket
        self._conversation = conversation
        self._dialect = dialect
        self._new_id = new_id
        self._stopping = stopping
        self._outbox = Outbox()
        self._group = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()
        self._ear = asyncio.Lock()
        """Whoever has it hears: one sound after the other, so that others find room for a turn."""
        self._answers: dict[str, asyncio.Task[None]] = {}
        self._idle = asyncio.Event()

    async def run(self) -> None:
        """Serve the client until its socket is released; what still runs for it ends then."""
        async with self._group:
            self._do(self._conversation.open())
            self._start(self._write(), "write")
            self._start(self._read(), "read")
            self._start(self._leave_when_stopping(), "stop")
            # A child that raises cancels this wait; how the connection ends is still to be said.
            await asyncio.shield(self._socket.released)
            for task in tuple(self._running):
                task.cancel()

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._group.create_task(work, name=f"turn-realtime-{name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    # -- the client -------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while True:
                await self._outbox.room()
                try:
                    async with asyncio.timeout(self._conversation.idle_timeout_s):
                        effects = await self._next_input()
                except TimeoutError:
                    if self._idle.is_set():
                        self._outbox.put(IDLE)
                        return
                else:
                    self._do(effects)
        except ClientGone as gone:
            logger.debug("a client left: %d", gone.code)
            self._socket.release(None)

    async def _next_input(self) -> list[Effect]:
        try:
            command = await self._socket.receive()
        except DuplexError as error:
            return self._conversation.refuse(error)
        return self._conversation.handle(command)

    async def _write(self) -> None:
        try:
            while True:
                await self._send(await self._outbox.take())
        except ClientGone as gone:
            logger.debug("a client does not read: %d", gone.code)
            self._socket.release(None)

    async def _send(self, events: Sequence[ShownEvent | Farewell]) -> None:
        texts: list[str] = []
        farewell: Farewell | None = None
        for event in events:
            if isinstance(event, Farewell):
                farewell = event
                break
            projected = render(event, self._dialect)
            if projected is not None:
                event_id = self._new_id("event")
                texts.append(encode_event(projected, event_id=event_id, seq=None))
        await self._socket.write(texts)
        if farewell is not None:
            self._socket.release(farewell)

    async def _leave_when_stopping(self) -> None:
        await self._stopping.wait()
        await self._idle.wait()
        self._outbox.put(STOPPED)

    # -- what the conversation wants --------------------------------------------------------

    def _do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Emit(event):
                    self._outbox.put(event)
                case Hear():
                    self._start(self._hear(effect), "hear")
                case Ask():
                    self._ask(effect)
                case Stop(response_id):
                    self._stop(response_id)
        if self._conversation.answering is None:
            self._idle.set()
        else:
            self._idle.clear()

    def _ask(self, ask: Ask) -> None:
        task = self._answers[ask.response_id] = self._start(self._answer(ask), "answer")
        # A task that is cancelled before it began has no `finally`.
        task.add_done_callback(lambda _: self._answers.pop(ask.response_id))

    def _stop(self, response_id: str) -> None:
        self._outbox.drop_sound(response_id)
        task = self._answers.get(response_id)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _hear(self, hear: Hear) -> None:
        async with self._ear:
            await self._hear_next(hear)

    async def _hear_next(self, hear: Hear) -> None:
        conversation = self._conversation
        try:
            audio = await asyncio.to_thread(hear.sound.decoded)
        except ValueError as error:
            self._do(conversation.unheard(hear.part, str(error), code="bad_audio"))
            return
        words: list[str] = []
        try:
            async with aclosing(self._omni.generate(TranscriptionRequest(audio=audio))) as chunks:
                words += [chunk.text async for chunk in chunks]
        except (StageFailed, TurnRefused) as error:
            logger.warning("a sound was not heard: %s", error)
            self._do(conversation.unheard(hear.part, str(error)))
        else:
            self._do(conversation.heard(hear.part, "".join(words)))

    async def _answer(self, ask: Ask) -> None:
        try:
            await self._generate(ask)
        except (StageFailed, TurnRefused, ValueError) as error:
            logger.warning("response %s failed: %s", ask.response_id, error)
            self._do(self._conversation.failed(ask.response_id, str(error)))

    async def _generate(self, ask: Ask) -> None:
        request = await asyncio.to_thread(answer_request, ask)
        async with aclosing(self._omni.generate(request)) as chunks:
            async for chunk in chunks:
                self._do(self._conversation.take(ask.response_id, chunk))
                if self._conversation.answering != ask.response_id:
                    return
                await self._outbox.room()
