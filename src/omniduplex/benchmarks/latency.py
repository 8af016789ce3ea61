"""Latency: spoken questions to a live server, one after the other, in real time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from omniduplex.benchmarks.machine import Machine
from omniduplex.benchmarks.questions import Question, speech_end
from omniduplex.benchmarks.share import OwnShare, StageTimes, own_share, stage_times
from omniduplex.benchmarks.summary import Summary, summarise
from omniduplex.benchmarks.wer import total_error_rate, word_error_rate
from omniduplex.clients import Clock, DuplexClient, ServerEvent, SessionConfig, Subscription
from omniduplex.clients.microphone import RATE_HZ, Microphone
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ErrorEvent,
    ResponseDone,
    SpeechStopped,
    TranscriptionCompleted,
    TurnDetectionPatch,
)

Vad = Literal["server_vad", "semantic_vad", "none"]
TURN_TIMEOUT_S = 60.0
PAUSE_MS = 1000
ENDED = ("completed", "incomplete")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MS_PER_S = 1000.0
ORIGINS = {
    "first_audio_ms": "last 10 ms of the question above -40 dBFS spoken -> first audio delta read,"
    " on the client's clock",
    "own_share_ms": "audio in + between stages + audio out, of the stages' and the client's"
    " monotonic clock: docs/benchmarks.md",
    "turn_end_ms": "the same end of the question -> the listening stage ends the turn: what the VAD"
    " hears as speech beyond it, and the hold",
    "hold_ms": "last frame that the VAD heard as speech -> frame that ended the turn, in audio",
    "recognition_ms": "recogniser given the turn -> its words",
    "llm_first_token_ms": "prompt at the listening stage -> first token",
    "llm_first_clause_ms": "prompt at the listening stage -> first whole clause",
    "tts_first_ms": "first clause at the speaking stage -> its audio",
}


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer; what is None was not measured."""

    question: str
    said: str | None
    heard: str
    word_error_rate: float | None
    status: str
    """The answer's status, `no_answer` when none came in time, or `error`."""
    cut_short: int
    """Answers that began in a pause of the question and were cancelled by its rest."""
    first_audio_ms: float | None = None
    turn_end_ms: float | None = None
    stages: StageTimes = StageTimes()
    own: OwnShare | None = None


class LatencyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Each figure over all answered turns; None when no turn has it."""

    first_audio_ms: Summary | None
    own_share_ms: Summary | None
    turn_end_ms: Summary | None
    hold_ms: Summary | None
    recognition_ms: Summary | None
    llm_first_token_ms: Summary | None
    llm_first_clause_ms: Summary | None
    tts_first_ms: Summary | None


class LatencyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the benchmark found."""

    benchmark: Literal["latency"] = "latency"
    machine: Machine
    model: str
    vad: Vad
    voice_of_questions: str
    completed: int
    incomplete: int
    """Answers that the model ended at its length limit; they are measured too."""
    failed: int
    word_error_rate: float | None
    """Over all words of all questions whose words are known."""
    figures: LatencyFigures
    origins: dict[str, str]
    turns: tuple[Turn, ...]


@dataclass(slots=True)
class _Answer:
    """What was seen of one turn so far."""

    heard: list[str] = field(default_factory=list)
    turn_end_ms: int | None = None
    first_audio_at: float | None = None
    audio_bytes: int = 0
    cut_short: int = 0
    status: str = "no_answer"
    stages: StageTimes = field(default_factory=StageTimes)


class Conversation:
    """Asks over one session and waits for each answer to end."""

    def __init__(self, client: DuplexClient, clock: Clock, vad: Vad) -> None:
        self._client = client
        self._clock = clock
        self._vad = vad
        self._microphone = Microphone(client.append_audio, clock)
        self._events = client.events()
        self._one_clock = urlsplit(client.url).hostname in LOOPBACK

    async def hold(
        self, questions: Sequence[Question], on_turn: Callable[[Turn], None]
    ) -> list[Turn]:
        """Ask all, and tell each turn when it is over."""
        turns = []
        async with asyncio.TaskGroup() as tasks:
            microphone = tasks.create_task(self._microphone.run(), name="microphone")
            for question in questions:
                turns.append(await self._ask(question))
                on_turn(turns[-1])
            microphone.cancel()
        return turns

    async def _ask(self, question: Question) -> Turn:
        start = self._microphone.say(question.pcm, PAUSE_MS)
        stop = start + len(question.pcm) // 2
        answer = _Answer()
        try:
            async with asyncio.timeout(TURN_TIMEOUT_S + (stop - start) / RATE_HZ):
                if self._vad == "none":
                    await self._microphone.until_sent(stop)
                    await self._client.commit(create_response=True)
                await _follow(self._events, answer, self._clock)
        except TimeoutError:
            answer.status = "no_answer"
        await self._acknowledge(answer)
        return self._turn(question, answer, start + speech_end(question.pcm))

    async def _acknowledge(self, answer: _Answer) -> None:
        """Tell that all was heard, so that the next question interrupts nothing."""
        if answer.status in ENDED:
            output = self._client.config.output_audio
            samples = answer.audio_bytes / output.bytes_per_sample
            await self._client.ack_playback(samples / output.sample_rate_hz * MS_PER_S)

    def _turn(self, question: Question, answer: _Answer, spoken: int) -> Turn:
        heard = " ".join(answer.heard)
        turn = Turn(
            question=question.name,
            said=question.text,
            heard=heard,
            word_error_rate=word_error_rate(question.text, heard) if question.text else None,
            status=answer.status,
            cut_short=answer.cut_short,
            stages=answer.stages,
        )
        if answer.status not in ENDED or answer.first_audio_at is None:
            return turn
        spoken_at = self._microphone.spoken_at(spoken)
        return msgspec.structs.replace(
            turn,
            first_audio_ms=(answer.first_audio_at - spoken_at) * MS_PER_S,
            turn_end_ms=self._turn_end_ms(answer, spoken_at),
            own=self._own_share(answer),
        )

    def _turn_end_ms(self, answer: _Answer, spoken_at: float) -> float | None:
        ended_at = answer.stages.at_turn_end
        return None if ended_at is None or not self._one_clock else (ended_at - spoken_at) * 1000

    def _own_share(self, answer: _Answer) -> OwnShare | None:
        if not self._one_clock or answer.turn_end_ms is None or answer.first_audio_at is None:
            return None
        turn_end = answer.turn_end_ms * RATE_HZ // int(MS_PER_S)
        return own_share(
            answer.stages,
            sent_at=self._microphone.sent_at(turn_end),
            received_at=answer.first_audio_at,
        )


async def _follow(events: Subscription[ServerEvent], answer: _Answer, clock: Clock) -> None:
    """Read up to the end of an answer that was not cut short by the question itself."""
    async for event in events:
        match event:
            case SpeechStopped():
                answer.turn_end_ms = event.audio_end_ms
            case TranscriptionCompleted():
                answer.heard.append(event.transcript)
            case AudioDelta():
                if answer.first_audio_at is None:
                    answer.first_audio_at = clock.now()
                answer.audio_bytes += len(event.delta)
            case ErrorEvent():
                answer.status = "error"
                return
            case ResponseDone() if event.response.status == "cancelled":
                answer.cut_short += 1
                answer.first_audio_at, answer.audio_bytes = None, 0
            case ResponseDone():
                answer.status = event.response.status
                answer.stages = stage_times(event.response.metadata)
                return


def session_config(vad: Vad) -> SessionConfig:
    """The session of the benchmark: turns by the server, or with `none` by commits."""
    detection = None
    if vad != "none":
        detection = TurnDetectionPatch(type=vad)
    return SessionConfig(
        input_audio=AudioFormat(sample_rate_hz=RATE_HZ),
        turn_detection=detection,
        auto_response=vad != "none",
    )


async def measure_latency(
    client: DuplexClient,
    clock: Clock,
    vad: Vad,
    questions: Sequence[Question],
    *,
    turns: int,
    on_turn: Callable[[Turn], None],
) -> list[Turn]:
    """Ask the questions in turn, over and over, until there are so many turns.

    Raises DuplexClientError when the session cannot be opened or breaks.
    """
    async with client:
        asked = list(itertools.islice(itertools.cycle(questions), turns))
        return await Conversation(client, clock, vad).hold(asked, on_turn)


def report_latency(
    turns: Sequence[Turn], *, machine: Machine, model: str, vad: Vad, voice_of_questions: str
) -> LatencyReport:
    """Put turns together."""
    answered = [turn for turn in turns if turn.first_audio_ms is not None]
    completed = sum(turn.status == "completed" for turn in answered)
    words = [(turn.said, turn.heard) for turn in turns if turn.said]
    return LatencyReport(
        machine=machine,
        model=model,
        vad=vad,
        voice_of_questions=voice_of_questions,
        completed=completed,
        incomplete=len(answered) - completed,
        failed=len(turns) - len(answered),
        word_error_rate=total_error_rate(words) if words else None,
        figures=_figures(answered),
        origins=ORIGINS,
        turns=tuple(turns),
    )


def _figures(turns: Sequence[Turn]) -> LatencyFigures:
    def ms(read: Callable[[Turn], float | None]) -> Summary | None:
        seconds = [read(turn) for turn in turns]
        return summarise([None if value is None else value * MS_PER_S for value in seconds])

    return LatencyFigures(
        first_audio_ms=summarise([turn.first_audio_ms for turn in turns]),
        own_share_ms=ms(lambda turn: turn.own.total_s if turn.own else None),
        turn_end_ms=summarise([turn.turn_end_ms for turn in turns]),
        hold_ms=ms(lambda turn: turn.stages.hold_s),
        recognition_ms=ms(lambda turn: turn.stages.asr_s),
        llm_first_token_ms=ms(lambda turn: turn.stages.llm_first_token_s),
        llm_first_clause_ms=ms(lambda turn: turn.stages.llm_first_clause_s),
        tts_first_ms=ms(lambda turn: turn.stages.tts_first_s),
    )
