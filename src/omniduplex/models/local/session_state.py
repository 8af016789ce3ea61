"""The session's side of the embedded model: plans for its stages, projections of what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from omniduplex.engine.duplex.contracts import Abort, DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.model_events import (
    FunctionCall,
    Listen,
    ModelEvent,
    Projected,
    ResponseAudio,
    ResponseEnded,
    ResponseFailed,
    ResponseMetrics,
    ResponseText,
    UserSpeechResumed,
    UserSpeechStarted,
    UserTranscript,
    UserTurnDraft,
    UserTurnEnded,
)
from omniduplex.engine.duplex.plugin import DuplexModelSessionState, ResponsePrompt
from omniduplex.models.local.messages import (
    AnswerEnded,
    AnswerText,
    ClearInput,
    CommitHeard,
    CommitInput,
    ConfigureEar,
    EarSettings,
    Heard,
    KeptListening,
    SpeechBegan,
    SpeechWentOn,
    StartAnswer,
    ToListen,
    ToolCalled,
    TurnDrafted,
    TurnEnded,
    decode_from_listen,
    encode,
)
from omniduplex.protocol.duplex import (
    DuplexSessionConfig,
    InputTokenDetails,
    OutputTokenDetails,
    Usage,
)
from omniduplex.stages.messages import StageInput, StageOutput

LISTEN_STAGE, SPEAK_STAGE = 0, 1

# Silence in ms that ends a turn which sounds complete, and one which does not.
HOLDS_MS = {"high": (200, 600), "medium": (300, 1000), "auto": (300, 1000), "low": (500, 2000)}


def ear_settings(config: DuplexSessionConfig) -> EarSettings:
    """How the ear shall find turns under a session's configuration."""
    detection = config.turn_detection
    if detection is None:
        complete_ms, hold_ms = HOLDS_MS["auto"]
        return EarSettings(
            finds_turns=config.decides_turns, hold_ms=hold_ms, complete_hold_ms=complete_ms
        )
    settings = EarSettings(
        threshold=detection.threshold,
        prefix_padding_ms=detection.prefix_padding_ms,
        min_speech_duration_ms=detection.min_speech_duration_ms,
        hold_ms=detection.silence_duration_ms,
    )
    if detection.type == "semantic_vad":
        complete_ms, hold_ms = HOLDS_MS[detection.eagerness]
        return replace(settings, hold_ms=hold_ms, complete_hold_ms=complete_ms)
    return settings


@dataclass(slots=True)
class _Answer:
    """A response on its way through both stages."""

    key: str
    epoch: int
    speak: bool
    listen_id: str
    speak_id: str
    voiced: bool = False
    """Whether stage 1 has work for it."""
    ended: AnswerEnded | None = None


class LocalSessionState(DuplexModelSessionState):
    """One ear for the whole session, and the answers of the moment, by their stage requests."""

    def __init__(self) -> None:
        self._ear_id: str | None = None
        self._ear_epoch = 0
        self._answers: dict[str, _Answer] = {}  # by key
        self._by_request: dict[str, _Answer] = {}
        self._turn_metrics: dict[str, float] = {}

    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Open the ear; it outlives every cancel, for an interruption is heard at that moment."""
        self._ear_id = fence.request_id("stage0")
        self._ear_epoch = fence.epoch
        return self._tell_ear(ConfigureEar(ear_settings(config)))

    def plan_update(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Tell the ear how to listen from now on."""
        return self._tell_ear(ConfigureEar(ear_settings(config)))

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        """Give the audio to the ear; as it never speaks by itself, it need not be forced."""
        return self._to_ear(pcm=pcm)

    def plan_commit(self, fence: DuplexFence, item_id: str) -> Sequence[StageWork]:
        """Have the ear recognise what it holds."""
        return self._tell_ear(CommitInput(item_id))

    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        """Have the ear forget the open turn."""
        return self._tell_ear(ClearInput())

    def plan_response(
        self, fence: DuplexFence, key: str, prompt: ResponsePrompt
    ) -> Sequence[StageWork]:
        """Have stage 0 write the answer."""
        answer = _Answer(
            key=key,
            epoch=fence.epoch,
            speak=prompt.speak,
            listen_id=fence.request_id(f"stage0-{key}"),
            speak_id=fence.request_id(f"stage1-{key}"),
        )
        self._answers[key] = answer
        self._by_request |= {answer.listen_id: answer, answer.speak_id: answer}
        message = StageInput(
            answer.listen_id, fence.epoch, final=True, data=encode(StartAnswer(prompt))
        )
        return (Submit(LISTEN_STAGE, message),)

    def plan_cancel(self, fence: DuplexFence, key: str) -> Sequence[StageWork]:
        """Stop both stages' work on the response, and nothing else."""
        answer = self._answers.get(key)
        if answer is None:
            return ()
        self._forget(answer)
        return (Abort((answer.listen_id, answer.speak_id)),)

    def plan_close(self) -> Sequence[StageWork]:
        """Close the ear and stop all answers."""
        ear = () if self._ear_id is None else (self._ear_id,)
        requests = (*ear, *self._by_request)
        self._ear_id = None
        self._answers.clear()
        self._by_request.clear()
        return (Abort(requests),) if requests else ()

    def project(self, stage_id: int, output: StageOutput) -> Sequence[Projected]:
        """Events of the ear and of answers that are wanted, and the way of text into speech."""
        if output.request_id == self._ear_id:
            return self._project_ear(output)
        answer = self._by_request.get(output.request_id)
        if answer is None:
            return ()
        if output.error:
            return self._fail(answer, output.error)
        events: list[Projected] = []
        if self._turn_metrics:
            events.append(ResponseMetrics(answer.key, LISTEN_STAGE, self._turn_metrics))
            self._turn_metrics = {}
        if output.metrics:
            events.append(ResponseMetrics(answer.key, stage_id, output.metrics))
        if stage_id == SPEAK_STAGE:
            events += self._project_speech(answer, output)
        else:
            events += self._project_answer(answer, output)
        return events

    def _to_ear(self, *, pcm: bytes = b"", data: bytes = b"") -> Sequence[StageWork]:
        if self._ear_id is None:
            return ()
        return (Submit(LISTEN_STAGE, StageInput(self._ear_id, self._ear_epoch, pcm, data=data)),)

    def _tell_ear(self, order: ToListen) -> Sequence[StageWork]:
        return self._to_ear(data=encode(order))

    def _project_ear(self, output: StageOutput) -> Sequence[Projected]:
        heard = decode_from_listen(output.data)
        if isinstance(heard, AnswerText | ToolCalled | AnswerEnded):
            raise TypeError(f"the ear told {heard}, which is an answer's to tell")
        if isinstance(heard, KeptListening) and self._answers:
            return ()  # an answer runs: the decision was to speak
        if isinstance(heard, SpeechBegan):
            self._turn_metrics = {}
        if isinstance(heard, TurnEnded) and heard.transcript:
            # They belong to the answer to this turn: its next output takes them along.
            self._turn_metrics = output.metrics
        return (_user_event(heard),)

    def _project_answer(self, answer: _Answer, output: StageOutput) -> list[Projected]:
        match decode_from_listen(output.data):
            case AnswerText() if answer.speak:
                answer.voiced = True
                return [_speak(answer, output.text)]
            case AnswerText():
                return [ResponseText(answer.key, output.text)]
            case ToolCalled(call_id, name, arguments):
                return [FunctionCall(answer.key, call_id, name, arguments)]
            case AnswerEnded() as ended:
                answer.ended = ended
                if answer.voiced:
                    return [_speak(answer, "", final=True)]
                return [self._finish(answer, ended)]
            case heard:
                raise TypeError(f"an answer told {heard}, which is the ear's to tell")

    def _project_speech(self, answer: _Answer, output: StageOutput) -> list[Projected]:
        events: list[Projected] = []
        if output.pcm or output.text:
            events.append(ResponseAudio(answer.key, output.pcm, output.sample_rate_hz, output.text))
        if output.finished and answer.ended:
            events.append(self._finish(answer, answer.ended))
        return events

    def _finish(self, answer: _Answer, ended: AnswerEnded) -> ModelEvent:
        self._forget(answer)
        return ResponseEnded(answer.key, ended.reason, _usage(ended))

    def _fail(self, answer: _Answer, error: str) -> Sequence[Projected]:
        self._forget(answer)
        # The other stage may still be at work on it.
        return (
            ResponseFailed(answer.key, error),
            Abort((answer.listen_id, answer.speak_id)),
        )

    def _forget(self, answer: _Answer) -> None:
        del self._answers[answer.key]
        del self._by_request[answer.listen_id]
        del self._by_request[answer.speak_id]


def _speak(answer: _Answer, text: str, *, final: bool = False) -> Submit:
    message = StageInput(answer.speak_id, answer.epoch, text=text, final=final)
    return Submit(SPEAK_STAGE, message)


def _usage(ended: AnswerEnded) -> Usage | None:
    if ended.prompt_tokens is None or ended.completion_tokens is None:
        return None
    return Usage(
        total_tokens=ended.prompt_tokens + ended.completion_tokens,
        input_tokens=ended.prompt_tokens,
        output_tokens=ended.completion_tokens,
        input_token_details=InputTokenDetails(text_tokens=ended.prompt_tokens),
        output_token_details=OutputTokenDetails(text_tokens=ended.completion_tokens),
    )


def _user_event(heard: Heard) -> ModelEvent:
    match heard:
        case SpeechBegan(audio_start_ms):
            return UserSpeechStarted(audio_start_ms)
        case TurnDrafted(transcript):
            return UserTurnDraft(transcript)
        case SpeechWentOn():
            return UserSpeechResumed()
        case TurnEnded(audio_end_ms, transcript):
            return UserTurnEnded(audio_end_ms, transcript)
        case CommitHeard(item_id, transcript, seconds):
            return UserTranscript(item_id, transcript, seconds)
        case KeptListening():
            return Listen()
