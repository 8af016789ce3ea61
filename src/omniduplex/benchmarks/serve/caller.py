"""One caller: opens a session, asks its questions one after the other, and listens to the ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from omniduplex.benchmarks.frames import APPEND_BYTES
from omniduplex.benchmarks.questions import Question
from omniduplex.benchmarks.serve.answer import Answer, Arrivals
from omniduplex.benchmarks.serve.player import MS_PER_S
from omniduplex.benchmarks.serve.session import SESSION_ERRORS, Arrival, ServeSession
from omniduplex.clients import Clock
from omniduplex.clients.microphone import CHUNK_SAMPLES, SAMPLE_BYTES, Microphone

ANSWER_TIMEOUT_S = 60.0
PAUSE_MS = 500
"""Silence between the end of an answer, as it is heard, and the next question."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One session and what became of it."""

    answers: tuple[Answer, ...] = ()
    latest_chunk_ms: float = 0.0
    """How late the load itself was, at its worst: a microphone's chunk against its due time."""
    error: str | None = None
    """Why the session ended before its questions were answered."""


class Caller:
    """Holds one session; `call` never raises what a session may end in."""

    def __init__(self, session: ServeSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._microphone = Microphone(self._send, clock)
        self._unsent = b""
        self._answers: list[Answer] = []

    async def call(self, questions: Sequence[Question]) -> Call:
        """Ask all, unless the session ends first."""
        reason: str | None = None
        try:
            async with self._session:
                reason = await self._converse(questions)
        except* SESSION_ERRORS as group:
            reason = str(_first(group))
        return Call(
            answers=tuple(self._answers), latest_chunk_ms=self._latest_chunk_ms(), error=reason
        )

    async def _converse(self, questions: Sequence[Question]) -> str | None:
        events = self._session.events()
        async with asyncio.TaskGroup() as tasks:
            speaking = tasks.create_task(self._microphone.run(), name="microphone")
            reason = None
            for question in questions:
                reason = await self._ask(question, events)
                if reason is not None:
                    break
            speaking.cancel()
        return reason

    async def _ask(self, question: Question, events: AsyncIterator[Arrival]) -> str | None:
        """Ask one question; why there can be no next one, if so."""
        start = self._microphone.say(question.pcm, PAUSE_MS)
        await self._microphone.until_sent(start + len(question.pcm) // SAMPLE_BYTES)
        seen = Arrivals(self._clock.now())
        reason: str | None = None
        response_id: str | None = None
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._flush()
                await self._session.end_turn()
                response_id, reason = await _follow(events, seen, self._clock.now)
        except TimeoutError:
            reason = f"no answer within {ANSWER_TIMEOUT_S:g} s"
        answer = seen.answer()
        self._answers.append(answer)
        if reason is None and answer.playback:
            await self._clock.sleep_until(answer.playback[-1].ends_s)
            await self._session.report_heard(response_id, answer.audio_ms)
        return reason

    async def _send(self, chunk: bytes) -> None:
        # Two chunks make an append of 80 ms: a generator that is busy sending measures itself.
        self._unsent += chunk
        if len(self._unsent) >= APPEND_BYTES:
            await self._flush()

    async def _flush(self) -> None:
        unsent, self._unsent = self._unsent, b""
        if unsent:
            await self._session.send(unsent)

    def _latest_chunk_ms(self) -> float:
        microphone = self._microphone
        ends = range(CHUNK_SAMPLES, microphone.position + 1, CHUNK_SAMPLES)
        late = (microphone.sent_at(end) - microphone.spoken_at(end) for end in ends)
        return max(late, default=0.0) * MS_PER_S


async def _follow(
    events: AsyncIterator[Arrival], seen: Arrivals, now: Callable[[], float]
) -> tuple[str | None, str | None]:
    """Read up to the end of an answer: its id, and the error that stood in its place."""
    async for arrival in events:
        if arrival.error is not None:
            seen.status = "error"
            return None, arrival.error
        if arrival.text:
            seen.take_text(now())
        if arrival.audio_ms:
            seen.take_audio(now(), arrival.audio_ms)
        if arrival.status is not None:
            seen.status, seen.stages = arrival.status, arrival.stages
            return arrival.response_id, None
    return None, "the session ended before the answer did"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
