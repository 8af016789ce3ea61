"""Turn requests to the embedded model: the stages of its sessions, without an ear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.engine.turn_plugin import StageStep, Turn, TurnFeatures, TurnPlugin, TurnStep
from omniduplex.engine.turns import (
    AnswerRequest,
    FinishReason,
    SpeechRequest,
    TranscriptionRequest,
    TurnAudio,
    TurnChunk,
    TurnMessage,
    TurnRefused,
    TurnRequest,
    TurnToolCall,
    TurnUsage,
)
from omniduplex.models.local.answer_path import (
    LISTEN_STAGE,
    SPEAK_STAGE,
    AnswerPath,
    AnswerStep,
    Said,
    ToStage,
    clause,
)
from omniduplex.models.local.clauses import ClauseSplitter
from omniduplex.models.local.messages import (
    AnswerEnded,
    ToolCalled,
    Transcribe,
    Transcribed,
    decode_from_listen,
    encode,
)
from omniduplex.models.local.runtimes import require_runtimes
from omniduplex.stages.messages import StageInput, StageOutput


def transcribe(request_id: str, audio: TurnAudio) -> StageStep:
    """Have stage 0 recognise a sound."""
    order = StageInput(request_id, pcm=audio.pcm, final=True, data=encode(Transcribe()))
    return StageStep(LISTEN_STAGE, order)


def words_of(output: StageOutput) -> str:
    """The words that stage 0 recognised."""
    heard = decode_from_listen(output.data)
    if not isinstance(heard, Transcribed):
        raise TypeError(f"a recording told {heard}")
    return heard.transcript


class TranscriptionTurn(Turn):
    """One recording, recognised."""

    def __init__(self, turn_id: str, request: TranscriptionRequest) -> None:
        self._turn_id = turn_id
        self._request = request

    def begin(self) -> Sequence[TurnStep]:
        """Have it recognised."""
        return (transcribe(f"{self._turn_id}-hear", self._request.audio),)

    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        """All its words come at once."""
        return (TurnChunk(text=words_of(output), finish_reason="stop"),)


class SpeechTurn(Turn):
    """One text, spoken clause by clause as answers are."""

    def __init__(self, turn_id: str, request: SpeechRequest) -> None:
        self._request_id = f"{turn_id}-speak"
        self._speed = request.speed
        splitter = ClauseSplitter()
        self._clauses = [*splitter.push(request.text), *splitter.finish()]

    def begin(self) -> Sequence[TurnStep]:
        """Give all clauses to stage 1."""
        last = len(self._clauses) - 1
        return [
            StageStep(
                SPEAK_STAGE,
                clause(self._request_id, text, final=index == last, speed=self._speed),
            )
            for index, text in enumerate(self._clauses)
        ]

    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        """Pass the sound on."""
        return (
            TurnChunk(
                text=output.text,
                pcm=output.pcm,
                sample_rate_hz=output.sample_rate_hz,
                finish_reason="stop" if output.finished else None,
            ),
        )


class AnswerTurn(Turn):
    """The sounds of a conversation are recognised, then its next message is made."""

    def __init__(self, turn_id: str, request: AnswerRequest) -> None:
        self._request = request
        self._words: dict[str, str | None] = {}
        """What was recognised, by stage request, in the order of the sounds."""
        self._sounds: dict[str, TurnAudio] = {}
        for message in request.messages:
            for part in message.content:
                if isinstance(part, TurnAudio):
                    self._sounds[f"{turn_id}-hear{len(self._sounds)}"] = part
        self._path = AnswerPath(
            listen_id=f"{turn_id}-answer",
            speak_id=f"{turn_id}-speak",
            epoch=0,
            speak=request.speak,
            speed=request.speed,
        )
        self._called = False

    def begin(self) -> Sequence[TurnStep]:
        """Have all sounds recognised, or begin to answer when there are none."""
        if not self._sounds:
            return (self._start(),)
        self._words = dict.fromkeys(self._sounds)
        return [transcribe(request_id, sound) for request_id, sound in self._sounds.items()]

    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        """Collect words; once all are there, pass on what the answer brings."""
        if output.request_id not in self._words:
            return [self._step(step) for step in self._path.take(stage_id, output)]
        self._words[output.request_id] = words_of(output)
        if None in self._words.values():
            return ()
        return (self._start(),)

    def _start(self) -> TurnStep:
        words = iter([heard or "" for heard in self._words.values()])
        return _stage_step(self._path.start(prompt_of(self._request, words)))

    def _step(self, step: AnswerStep) -> TurnStep:
        match step:
            case ToStage():
                return _stage_step(step)
            case Said(text, pcm, rate_hz):
                return TurnChunk(text=text, pcm=pcm, sample_rate_hz=rate_hz)
            case ToolCalled(call_id, name, arguments):
                self._called = True
                call = TurnToolCall(call_id=call_id, name=name, arguments=arguments)
                return TurnChunk(tool_calls=(call,))
            case AnswerEnded():
                return self._end(step)

    def _end(self, ended: AnswerEnded) -> TurnChunk:
        stopped: FinishReason = "tool_calls" if self._called else "stop"
        usage = None
        if ended.prompt_tokens is not None and ended.completion_tokens is not None:
            usage = TurnUsage(
                input_tokens=ended.prompt_tokens, output_tokens=ended.completion_tokens
            )
        reason = "length" if ended.reason == "length" else stopped
        return TurnChunk(finish_reason=reason, usage=usage)


class _Language(msgspec.Struct, frozen=True):
    """The option of the listening stage that says what it recognises."""

    language: str = "en"


class LocalTurnPlugin(TurnPlugin):
    """Answers, speaks and transcribes with the stages of `LocalDuplexPlugin`."""

    input_rate_hz = 16_000

    def __init__(self, pipeline: PipelineConfig) -> None:
        require_runtimes()
        super().__init__(pipeline)
        self._language = msgspec.convert(pipeline.stages[0].options, _Language).language

    @property
    def features(self) -> TurnFeatures:
        """All there is; it recognises the one language of its recognizer."""
        return TurnFeatures(
            supports_chat_completions=True,
            supports_speech=True,
            supports_speed=True,
            supports_transcription=True,
            languages=(self._language,),
        )

    def create_turn(self, turn_id: str, request: TurnRequest) -> Turn:
        """A turn over the stages it needs; any voice name is an alias of the one voice there is."""
        match request:
            case AnswerRequest():
                return AnswerTurn(turn_id, request)
            case SpeechRequest():
                if not request.text.strip():
                    raise TurnRefused("invalid_value", "there is nothing to say", param="input")
                return SpeechTurn(turn_id, request)
            case TranscriptionRequest(language=language):
                if language not in (None, self._language):
                    message = f"this deployment recognises {self._language!r} only"
                    raise TurnRefused("unsupported", message, param="language")
                return TranscriptionTurn(turn_id, request)


def prompt_of(request: AnswerRequest, words: Iterator[str]) -> ResponsePrompt:
    """The prompt of a request, its sounds replaced by `words` in order.

    A conversation with a system message of its own gets none of the deployment's.
    """
    has_system = any(message.role == "system" for message in request.messages)
    return ResponsePrompt(
        instructions="" if has_system else None,
        messages=tuple(_prompt_message(message, words) for message in request.messages),
        speak=request.speak,
        temperature=request.temperature,
        max_tokens=request.max_tokens,
        voice=request.voice,
        tools=request.tools,
        tool_choice=request.tool_choice,
    )


def _prompt_message(message: TurnMessage, words: Iterator[str]) -> PromptMessage:
    texts = [part if isinstance(part, str) else next(words) for part in message.content]
    return PromptMessage(
        role=message.role,
        text="\n".join(text for text in texts if text),
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
    )


def _stage_step(step: ToStage) -> StageStep:
    return StageStep(step.stage_id, step.message)
