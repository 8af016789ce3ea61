"""A conversation held by recordings: a microphone that says them, an ear for the answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from omniduplex.audio import pcm
from omniduplex.audio.wav import write_wav
from omniduplex.clients import (
    Clock,
    DuplexClientBase,
    DuplexClientError,
    DuplexProtocolError,
    RealTimePlayer,
    ServerEvent,
    Subscription,
)
from omniduplex.clients.audio import delta_format, samples_of
from omniduplex.clients.microphone import Microphone
from omniduplex.entrypoints.cli.talk_view import Answer, Line, TalkView
from omniduplex.protocol.duplex import (
    AudioDelta,
    ErrorEvent,
    InputCommitted,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    TranscriptDelta,
    TranscriptionCompleted,
)

FRAME_MS = 20
# Root mean square of a frame that a listener would call sound: -40 dBFS.
AUDIBLE_RMS = 0.01
# How much of the first answer is heard before the user talks over it.
INTERRUPT_AFTER_MS = 1000
# How long the user waits for an answer before the call counts as failed.
PATIENCE_S = 60.0


@dataclass
class _Speech:
    """One answer while it arrives."""

    line: Line = field(default_factory=lambda: Line("model"))
    audio: bytearray = field(default_factory=bytearray)
    audio_ms: float = 0.0
    rate_hz: int = 0
    latency_ms: float | None = None
    status: str = "in_progress"
    reason: str = ""


class Conversation:
    """Asks, listens to the end, and talks over the first answer when there is a follow-up.

    It writes `response_01.wav` and so on into `out`, which exists.
    """

    def __init__(
        self,
        client: DuplexClientBase,
        view: TalkView,
        *,
        out: Path,
        clock: Clock,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._client = client
        self._view = view
        self._out = out
        self._clock = clock
        self._patience_s = patience_s
        self._microphone = Microphone(
            self._say, clock, rate_hz=client.config.input_audio.sample_rate_hz, chunk_ms=FRAME_MS
        )
        self._last_sound_at: float | None = None
        self._player = RealTimePlayer(client, clock=clock)
        self._speeches: dict[str, _Speech] = {}
        self._follow_up = b""
        self._user_speaks = False
        self._awaiting_answer = True
        self._last_news_at = 0.0
        self._shown = ""

    async def hold(self, question: bytes, follow_up: bytes = b"") -> list[Answer]:
        """Return every answer, once the last one has been heard.

        Raises:
            DuplexClientError: the session failed, an answer failed, or none came.
        """
        events = self._client.events()
        self._follow_up = follow_up
        self._last_news_at = self._clock.now()
        self._microphone.say(question)
        self._show("listening")
        helpers = [
            asyncio.create_task(self._microphone.run()),
            asyncio.create_task(self._player.run()),
            asyncio.create_task(self._listen(events)),
        ]
        try:
            await self._until_settled(helpers)
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        await self._player.report()
        return [self._answer(*known) for known in enumerate(self._speeches.items(), start=1)]

    async def _until_settled(self, helpers: list[asyncio.Task[None]]) -> None:
        while not self._settled():
            await self._clock.sleep(FRAME_MS / 1000)
            for helper in helpers:
                if helper.done():
                    helper.result()
                    raise DuplexClientError("the session ended before the answer did")
            self._maybe_interrupt()
            if self._clock.now() - self._last_news_at > self._patience_s:
                raise DuplexClientError(f"no answer within {self._patience_s:g} s")

    def _settled(self) -> bool:
        busy = self._user_speaks or self._awaiting_answer or self._follow_up
        return not busy and self._microphone.silent and self._player.idle

    def _maybe_interrupt(self) -> None:
        if not self._follow_up or not self._microphone.silent or not self._speeches:
            return
        response_id, speech = next(reversed(self._speeches.items()))
        heard = self._player.played_ms(response_id) >= INTERRUPT_AFTER_MS
        # One that is cancelled is followed by another.
        over = speech.status in ("completed", "incomplete") and self._player.idle
        if heard or over:
            self._microphone.say(self._follow_up)
            self._follow_up = b""
            self._awaiting_answer = True

    async def _say(self, frame: bytes) -> None:
        if pcm.rms(frame) >= AUDIBLE_RMS:
            self._last_sound_at = self._microphone.spoken_at(self._microphone.position)
        await self._client.append_audio(frame)

    async def _listen(self, events: Subscription[ServerEvent]) -> None:
        async for event in events:
            self._player.feed(event)
            self._hear(event)

    def _hear(self, event: ServerEvent) -> None:
        match event:
            case SpeechStarted():
                self._user_speaks = self._awaiting_answer = True
                self._show("listening: you speak")
            case SpeechStopped() | InputCommitted():
                self._user_speaks = False
                self._show("thinking")
            case TranscriptionCompleted():
                self._view.complete(Line("you", event.transcript.strip()))
            case ErrorEvent():
                self._fail_or_warn(event)
            case _:
                self._hear_answer(event)
                return
        self._last_news_at = self._clock.now()

    def _hear_answer(self, event: ServerEvent) -> None:
        match event:
            case ResponseCreated():
                self._speech(event.response_id)
            case AudioDelta():
                self._hear_audio(event)
            case TranscriptDelta() | TextDelta():
                line = self._speech(event.response_id).line
                line.words += event.delta
                self._view.growing(line)
            case ResponseDone():
                self._finish(event)
            case _:
                return
        self._last_news_at = self._clock.now()

    def _hear_audio(self, event: AudioDelta) -> None:
        speech = self._speech(event.response_id)
        expected = self._client.config.output_audio
        samples, audio_format = samples_of(event.delta, delta_format(event, expected))
        if speech.latency_ms is None:
            origin = self._last_sound_at
            speech.latency_ms = (self._clock.now() - origin) * 1000 if origin is not None else 0.0
            speech.line.note = f"({speech.latency_ms:.0f} ms)"
            self._show("speaking")
        speech.rate_hz = audio_format.sample_rate_hz
        speech.audio += samples
        speech.audio_ms += audio_format.duration_ms(len(samples))

    def _finish(self, event: ResponseDone) -> None:
        speech = self._speech(event.response_id)
        speech.status = event.response.status
        details = event.response.status_details
        if speech.status == "failed":
            code = details.error.code if details and details.error else "engine_error"
            raise DuplexProtocolError(code, f"answer {len(self._speeches)} failed")
        if speech.status == "cancelled":
            speech.line.note = f"{speech.line.note} [interrupted]".lstrip()
        else:
            self._awaiting_answer = self._user_speaks
        if speech.status == "incomplete" and details and details.reason:
            speech.reason = details.reason
        speech.line.words = speech.line.words.strip()
        self._view.complete(speech.line)
        self._show("listening")

    def _fail_or_warn(self, event: ErrorEvent) -> None:
        # A report of playback that comes too late costs nobody anything.
        if event.error.code.startswith("playback_"):
            self._view.warn(f"{event.error.code}: {event.error.message}")
            return
        raise DuplexProtocolError.from_event(event)

    def _show(self, state: str) -> None:
        if state != self._shown:
            self._shown = state
            self._view.state(state)

    def _speech(self, response_id: str) -> _Speech:
        return self._speeches.setdefault(response_id, _Speech())

    def _answer(self, number: int, known: tuple[str, _Speech]) -> Answer:
        response_id, speech = known
        file = self._out / f"response_{number:02d}.wav" if speech.audio else None
        if file is not None:
            write_wav(file, bytes(speech.audio), speech.rate_hz)
        heard_ms = self._player.played_ms(response_id)
        # An answer that was complete may still be played when the user begins to talk.
        cut = speech.status == "completed" and heard_ms < int(speech.audio_ms) - FRAME_MS
        reason = "talked over" if cut else speech.reason
        return Answer(
            status=f"{speech.status} ({reason})" if reason else speech.status,
            transcript=speech.line.words,
            audio_ms=speech.audio_ms,
            heard_ms=heard_ms,
            latency_ms=speech.latency_ms,
            file=file,
        )
