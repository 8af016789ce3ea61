"""Turn requests to the echo model: it hears their sounds one by one, then says what it heard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from omniduplex.config.options import read_options
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.turn_plugin import StageStep, Turn, TurnFeatures, TurnPlugin, TurnStep
from omniduplex.engine.turns import (
    AnswerRequest,
    FinishReason,
    SpeechRequest,
    TranscriptionRequest,
    TurnAudio,
    TurnChunk,
    TurnMessage,
    TurnRequest,
    TurnToolCall,
    TurnUsage,
)
from omniduplex.models.echo.messages import (
    INPUT_RATE_HZ,
    Answer,
    AnswerPart,
    CommitTurn,
    EchoOptions,
    FromStage,
    Listen,
    ToStage,
    TurnCommitted,
    must_call,
    tool_names,
)
from omniduplex.stages.messages import StageInput, StageOutput

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FromStage)


class EchoTurn(Turn):
    """One listening request for all sounds of the turn, one more for what it says."""

    def __init__(self, turn_id: str, stage_id: int, request: TurnRequest) -> None:
        self._listening = f"{turn_id}-listen"
        self._answering = f"{turn_id}-answer"
        self._stage_id = stage_id
        self._request = request
        self._sounds = tuple(_sounds(request))
        self._words: list[str] = []

    def begin(self) -> Sequence[TurnStep]:
        """Open an ear, let it hear, and end each sound as a turn of the user."""
        steps: list[TurnStep] = [self._tell(Listen(silence_ms=0, ends_turns=False))]
        for index, sound in enumerate(self._sounds):
            heard = StageInput(self._listening, pcm=sound.pcm)
            steps += StageStep(self._stage_id, heard), self._tell(CommitTurn(str(index)))
        if not self._sounds:
            steps.append(self._after_hearing())
        return steps

    def take(self, stage_id: int, output: StageOutput) -> Sequence[TurnStep]:
        """Collect the words of the sounds; then pass on what the stage says."""
        match _decoder.decode(output.data):
            case TurnCommitted(_, transcript, _):
                self._words.append(transcript)
                if len(self._words) == len(self._sounds):
                    return (self._after_hearing(),)
            case AnswerPart() as part:
                return (_chunk(part, output),)
        return ()

    def _after_hearing(self) -> TurnStep:
        match self._request:
            case AnswerRequest() as request:
                return self._ask(self._answer(request))
            case SpeechRequest(text=text):
                return self._ask(Answer(key="", listening=self._listening, text=text))
            case TranscriptionRequest():
                return TurnChunk(text=self._words[0], finish_reason="stop")

    def _answer(self, request: AnswerRequest) -> Answer:
        words = iter(self._words)
        texts = [(message.role, _text(message, words)) for message in request.messages]
        role, text = next((one for one in reversed(texts) if one[0] in ("user", "tool")), ("", ""))
        return Answer(
            key="",
            listening=self._listening,
            text=text,
            from_tool=role == "tool",
            input_tokens=sum(len(text.split()) for _, text in texts),
            speak=request.speak,
            max_words=request.max_tokens,
            tools=tool_names(request.tools, request.tool_choice),
            must_call=must_call(request.tools, request.tool_choice),
        )

    def _tell(self, message: ToStage) -> StageStep:
        order = StageInput(self._listening, data=_encoder.encode(message))
        return StageStep(self._stage_id, order)

    def _ask(self, answer: Answer) -> StageStep:
        order = StageInput(self._answering, final=True, data=_encoder.encode(answer))
        return StageStep(self._stage_id, order)


class EchoTurnPlugin(TurnPlugin):
    """Every kind of request; not from a deployment whose answers need audio that flows in."""

    input_rate_hz = INPUT_RATE_HZ

    def __init__(self, pipeline: PipelineConfig) -> None:
        super().__init__(pipeline)
        self._stage = pipeline.stages[0]
        options = read_options(self._stage, EchoOptions)
        self._answers_requests = not (options.self_start or options.paced)

    @property
    def features(self) -> TurnFeatures:
        """Any language will do: it hears tones."""
        able = self._answers_requests
        return TurnFeatures(
            supports_chat_completions=able, supports_speech=able, supports_transcription=able
        )

    def create_turn(self, turn_id: str, request: TurnRequest) -> EchoTurn:
        """A turn on the one stage of the pipeline."""
        return EchoTurn(turn_id, self._stage.stage_id, request)


def _sounds(request: TurnRequest) -> Iterator[TurnAudio]:
    match request:
        case AnswerRequest(messages=messages):
            for message in messages:
                yield from (part for part in message.content if isinstance(part, TurnAudio))
        case TranscriptionRequest(audio=audio):
            yield audio


def _text(message: TurnMessage, words: Iterator[str]) -> str:
    parts = (part if isinstance(part, str) else next(words) for part in message.content)
    return " ".join(part for part in parts if part)


def _chunk(part: AnswerPart, output: StageOutput) -> TurnChunk:
    end, called = part.end, part.call
    calls = (
        (TurnToolCall(call_id=called.call_id, name=called.name, arguments=called.arguments),)
        if called
        else ()
    )
    reason: FinishReason | None = None
    usage = None
    if end:
        reason = "tool_calls" if calls else end.reason
        usage = TurnUsage(input_tokens=end.input_tokens, output_tokens=end.output_tokens)
    return TurnChunk(
        text=output.text,
        pcm=output.pcm,
        sample_rate_hz=output.sample_rate_hz,
        tool_calls=calls,
        finish_reason=reason,
        usage=usage,
    )
