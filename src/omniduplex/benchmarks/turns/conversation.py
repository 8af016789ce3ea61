"""One scenario over one line, in real time, recorded on both channels."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping

from omniduplex.benchmarks.turns.agent_track import AgentTrack
from omniduplex.benchmarks.turns.line import Line, LineError, LineEvent
from omniduplex.benchmarks.turns.recording import Recording, TimedEvent
from omniduplex.benchmarks.turns.scenarios import Scenario
from omniduplex.benchmarks.turns.script import Script
from omniduplex.benchmarks.turns.sounds import Samples, at_level
from omniduplex.benchmarks.turns.user_track import UserTrack
from omniduplex.clients import Clock, DuplexClientError

CHUNK_MS = 20
PREROLL_MS = 40
REPORT_EVERY_S = 0.1
# The recording shows sound and words better, and our own reports come back every 100 ms.
_UNTOLD = (".delta", "playback.acknowledged")


class Conversation:
    """Sends the user's channel every 20 ms, and plays what comes back."""

    def __init__(
        self, line: Line, clock: Clock, scenario: Scenario, clips: Mapping[str, Samples]
    ) -> None:
        self._line = line
        self._clock = clock
        self._script = Script(scenario, clips, line.rate_hz)
        self._user = UserTrack()
        self._agent = AgentTrack(self._samples(PREROLL_MS))
        self._started_at = 0.0
        self._latest_s = 0.0
        self._reported: dict[str, tuple[int, bool]] = {}
        self._events: list[TimedEvent] = []
        self._errors: list[str] = []
        if scenario.background is not None:
            self._user.surround(at_level(clips[scenario.background], scenario.background_dbfs))
        self._echo = scenario.echo
        if self._echo is not None:
            self._user.echo(
                self._agent.samples, self._echo.gain_db, self._samples(self._echo.delay_ms)
            )

    async def hold(self) -> Recording:
        """Talk until the scenario is over, or the line breaks: then with what was recorded."""
        try:
            await self._talk()
        except* (LineError, DuplexClientError) as group:
            self._errors += map(str, group.exceptions)
        return Recording(
            rate_hz=self._line.rate_hz,
            user_pcm=bytes(self._user.pcm),
            user=tuple(self._script.spans),
            agent=self._agent,
            echo=self._echo is not None,
            missed=tuple(self._script.missed),
            latest_chunk_ms=self._latest_s * 1000,
            events=tuple(self._events),
            errors=tuple(self._errors),
        )

    async def _talk(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._started_at = self._clock.now()
            helpers = [
                tasks.create_task(self._listen(), name="listen"),
                tasks.create_task(self._report(), name="report"),
            ]
            await self._speak()
            for task in helpers:
                task.cancel()

    async def _speak(self) -> None:
        chunk = self._samples(CHUNK_MS)
        for count in itertools.count(1):
            self._script.advance(self._user, self._agent, chunk)
            if self._script.over(self._user.position, self._agent):
                return
            due = self._started_at + count * CHUNK_MS / 1000
            await self._clock.sleep_until(due)
            self._latest_s = max(self._latest_s, self._clock.now() - due)
            await self._line.send(self._user.take(chunk))

    async def _listen(self) -> None:
        async for event in self._line.events():
            self._take(event)

    def _take(self, event: LineEvent) -> None:
        at_s = self._clock.now() - self._started_at
        now = round(at_s * self._line.rate_hz)
        if event.error is not None:
            self._errors.append(event.error)
        if not event.type.endswith(_UNTOLD):
            self._events.append(
                TimedEvent(
                    at_s=at_s,
                    type=event.type,
                    response_id=event.response_id,
                    note=event.note or event.error or "",
                    audio_ms=event.audio_ms,
                    interrupted_after_ms=event.interrupted_after_ms,
                )
            )
        if event.silences:
            self._agent.stop(now, event.response_id)
        if event.response_id is None:
            return
        self._agent.arrive(event.response_id, event.audio, now)
        if event.text:
            self._agent.say_text(event.response_id, event.text)
        if event.ended:
            self._agent.done(event.response_id)

    async def _report(self) -> None:
        while True:
            await self._clock.sleep(REPORT_EVERY_S)
            at_s = self._clock.now() - self._started_at
            now = round(at_s * self._line.rate_hz)
            for name, answer in list(self._agent.answers.items()):
                progress = (self._agent.heard(name, now), answer.cut)
                if not answer.received or self._reported.get(name) == progress:
                    continue
                self._reported[name] = progress
                ms = progress[0] / self._line.rate_hz * 1000
                await self._line.report_heard(name, ms, cut_off=answer.cut)

    def _samples(self, ms: float) -> int:
        return round(ms / 1000 * self._line.rate_hz)
