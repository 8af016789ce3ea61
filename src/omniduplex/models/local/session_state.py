"""The session's side of the embedded model: plans for its stages, projections of what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from omniduplex.audio.pcm import duration_ms
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
    UserAudioWaits,
    UserSpeechProgress,
    UserSpeechResumed,
    UserSpeechStarted,
    UserTranscript,
    UserTranscriptFailed,
    UserTurnDraft,
    UserTurnEnded,
    UserTurnUnheard,
)
from omniduplex.engine.duplex.plugin import DuplexModelSessionState
from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.models.local.answer_path import (
    LISTEN_STAGE,
    AnswerPath,
    AnswerStep,
    Said,
    ToStage,
)
from omniduplex.models.local.messages import (
    AnswerEnded,
    AudioWaits,
    ClearInput,
    CommitHeard,
    CommitInput,
    CommitUnheard,
    ConfigureEar,
    EarSettings,
    Heard,
    KeptListening,
    OfTurn,
    Report,
    SpeechBegan,
    SpeechGrew,
    SpeechWentOn,
    ToListen,
    ToolCalled,
    Transcribe,
    Transcribed,
    TurnDrafted,
    TurnEnded,
    TurnUnheard,
    WatchSpeech,
    decode_from_listen,
    encode,
)
from omniduplex.protocol.duplex import (
    DuplexError,
    DuplexSessionConfig,
    Usage,
)
from omniduplex.stages.messages import StageInput, StageOutput

EAR_RATE_HZ = 16_000
# Silence in ms that ends a turn which sounds complete, and one which does not.
HOLDS_MS = {"high": (200, 800), "medium": (300, 1600), "auto": (300, 1600), "low": (500, 4000)}


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


@dataclass(slots=True, frozen=True)
class _Answer:
    """A response on its way through both stages."""

    key: str
    path: AnswerPath


@dataclass(slots=True, frozen=True)
class _Recording:
    """A part of an item that is being recognised."""

    item_id: str
    content_index: int
    seconds: float


class LocalSessionState(DuplexModelSessionState):
    """One ear for the whole session, and the answers of the moment, by their stage requests."""

    def __init__(self) -> None:
        self._ear_id: str | None = None
        self._ear_epoch = 0
        self._answers: dict[str, _Answer] = {}  # by key
        self._by_request: dict[str, _Answer] = {}
        self._by_recording: dict[str, _Recording] = {}
        self._recordings = 0
        self._turn_metrics: dict[str, float] = {}
        self._prompt: ResponsePrompt | None = None
        # Commits and clears, and the turns that the ear ended since: what it tells of an open
        # turn from before the newest of them is about audio that is sealed or dropped.
        self._generation = 0
        self._turns_known = 0

    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Open the ear; it outlives every cancel, for an interruption is heard at that moment."""
        self._ear_id = fence.request_id("stage0")
        self._ear_epoch = fence.epoch
        return self._configure(config)

    def plan_update(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Tell the ear how to listen from now on."""
        return self._configure(config)

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        """Give the audio to the ear; as it never speaks by itself, it need not be forced."""
        return self._to_ear(pcm=pcm)

    def plan_commit(self, fence: DuplexFence, item_id: str) -> Sequence[StageWork]:
        """Have the ear recognise what it holds."""
        turns_known = self._turns_known
        self._begin_generation()
        return self._tell_ear(CommitInput(item_id, self._generation, turns_known))

    def plan_recognise(
        self, fence: DuplexFence, item_id: str, content_index: int, pcm: bytes
    ) -> Sequence[StageWork]:
        """Have the recogniser hear audio that is no part of the stream."""
        seconds = duration_ms(len(pcm), EAR_RATE_HZ) / 1000
        self._recordings += 1
        recording = _Recording(item_id, content_index, seconds)
        request_id = fence.request_id(f"stage0-item{self._recordings}")
        self._by_recording[request_id] = recording
        message = StageInput(request_id, fence.epoch, pcm, final=True, data=encode(Transcribe()))
        return (Submit(LISTEN_STAGE, message),)

    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        """Have the ear forget the open turn."""
        self._begin_generation()
        return self._tell_ear(ClearInput(self._generation))

    def plan_overlap(self, fence: DuplexFence, *, active: bool) -> Sequence[StageWork]:
        """Have the ear tell of speech while it goes on."""
        return self._tell_ear(WatchSpeech(active))

    def plan_response(
        self, fence: DuplexFence, key: str, prompt: ResponsePrompt
    ) -> Sequence[StageWork]:
        """Have stage 0 write the answer."""
        path = AnswerPath(
            listen_id=fence.request_id(f"stage0-{key}"),
            speak_id=fence.request_id(f"stage1-{key}"),
            epoch=fence.epoch,
            speak=prompt.speak,
            speed=prompt.speed,
        )
        answer = _Answer(key, path)
        self._answers[key] = answer
        self._by_request |= dict.fromkeys(path.request_ids, answer)
        return (_submit(path.start(prompt)),)

    def plan_cancel(self, fence: DuplexFence, key: str) -> Sequence[StageWork]:
        """Stop both stages' work on the response, and nothing else."""
        answer = self._answers.get(key)
        if answer is None:
            return ()
        self._forget(answer)
        return (Abort(answer.path.request_ids),)

    def plan_close(self) -> Sequence[StageWork]:
        """Close the ear and stop all answers."""
        ear = () if self._ear_id is None else (self._ear_id,)
        requests = (*ear, *self._by_request, *self._by_recording)
        self._ear_id = None
        self._by_recording.clear()
        self._answers.clear()
        self._by_request.clear()
        return (Abort(requests),) if requests else ()

    def project(self, stage_id: int, output: StageOutput) -> Sequence[Projected]:
        """Events of the ear and of answers that are wanted, and the way of text into speech."""
        if output.request_id == self._ear_id:
            return self._project_ear(output)
        recording = self._by_recording.pop(output.request_id, None)
        if recording is not None:
            return (_words_of(recording, output),)
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
        events += [self._project_step(answer, step) for step in answer.path.take(stage_id, output)]
        return events

    def _to_ear(self, *, pcm: bytes = b"", data: bytes = b"") -> Sequence[StageWork]:
        if self._ear_id is None:
            return ()
        return (Submit(LISTEN_STAGE, StageInput(self._ear_id, self._ear_epoch, pcm, data=data)),)

    def _tell_ear(self, order: ToListen) -> Sequence[StageWork]:
        return self._to_ear(data=encode(order))

    def _configure(self, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Also let the language model read new instructions before there is a question."""
        prompt = ResponsePrompt(
            instructions=config.instructions,
            messages=(),
            tools=config.tools,
            tool_choice=config.tool_choice,
        )
        is_new = prompt != self._prompt
        self._prompt = prompt
        settings = ear_settings(config)
        return self._tell_ear(ConfigureEar(settings, prompt if is_new else None))

    def _begin_generation(self) -> None:
        self._generation += 1
        self._turns_known = 0

    def _project_ear(self, output: StageOutput) -> Sequence[Projected]:
        if output.error:  # no ear, no session
            raise DuplexError("runtime_data_plane_stream_failed", output.error)
        report = decode_from_listen(output.data)
        if not isinstance(report, Report):
            raise TypeError(f"the ear told {report}, which is no report")
        heard = report.heard
        if isinstance(heard, OfTurn) and report.generation != self._generation:
            return ()
        if isinstance(heard, KeptListening) and self._answers:
            return ()  # an answer runs: the decision was to speak
        if isinstance(heard, SpeechBegan):
            self._turn_metrics = {}
        if isinstance(heard, TurnEnded | TurnUnheard):
            self._turns_known += 1
        if isinstance(heard, TurnEnded) and heard.transcript:
            # They belong to the answer to this turn: its next output takes them along.
            self._turn_metrics = output.metrics
        return (_user_event(heard),)

    def _project_step(self, answer: _Answer, step: AnswerStep) -> Projected:
        match step:
            case ToStage():
                return _submit(step)
            case Said(text, pcm, rate_hz):
                if answer.path.speak:
                    return ResponseAudio(answer.key, pcm, rate_hz, text)
                return ResponseText(answer.key, text)
            case ToolCalled(call_id, name, arguments):
                return FunctionCall(answer.key, call_id, name, arguments)
            case AnswerEnded():
                return self._finish(answer, step)

    def _finish(self, answer: _Answer, ended: AnswerEnded) -> ModelEvent:
        self._forget(answer)
        return ResponseEnded(answer.key, ended.reason, _usage(ended))

    def _fail(self, answer: _Answer, error: str) -> Sequence[Projected]:
        self._forget(answer)
        # The other stage may still be at work on it.
        return (
            ResponseFailed(answer.key, error),
            Abort(answer.path.request_ids),
        )

    def _forget(self, answer: _Answer) -> None:
        del self._answers[answer.key]
        for request_id in answer.path.request_ids:
            del self._by_request[request_id]


def _submit(step: ToStage) -> Submit:
    return Submit(step.stage_id, step.message)


def _usage(ended: AnswerEnded) -> Usage | None:
    if ended.prompt_tokens is None or ended.completion_tokens is None:
        return None
    return Usage.of_text(ended.prompt_tokens, ended.completion_tokens)


def _words_of(recording: _Recording, output: StageOutput) -> ModelEvent:
    item_id, index = recording.item_id, recording.content_index
    if output.error:
        return UserTranscriptFailed(item_id, output.error, index)
    match decode_from_listen(output.data):
        case Transcribed(transcript):
            return UserTranscript(item_id, transcript, recording.seconds, index)
        case heard:
            raise TypeError(f"a recording told {heard}, which is not its to tell")


def _user_event(heard: Heard) -> Projected:
    match heard:
        case CommitHeard(item_id, transcript, seconds):
            return UserTranscript(item_id, transcript, seconds)
        case CommitUnheard(item_id, message):
            return UserTranscriptFailed(item_id, message)
        case KeptListening():
            return Listen()
        case AudioWaits(audio_ms):
            return UserAudioWaits(audio_ms)
        case of_turn:
            return _turn_event(of_turn)


def _turn_event(heard: OfTurn) -> ModelEvent:
    match heard:
        case SpeechBegan(audio_start_ms):
            return UserSpeechStarted(audio_start_ms)
        case SpeechGrew():
            return _progress(heard)
        case TurnDrafted(transcript):
            return UserTurnDraft(transcript)
        case SpeechWentOn():
            return UserSpeechResumed()
        case TurnEnded(audio_end_ms, transcript, speech):
            return UserTurnEnded(
                audio_end_ms, transcript, None if speech is None else _progress(speech)
            )
        case TurnUnheard(audio_end_ms, message):
            return UserTurnUnheard(audio_end_ms, message)


def _progress(speech: SpeechGrew) -> UserSpeechProgress:
    return UserSpeechProgress(
        speech.speech_ms,
        speech.level_dbfs,
        speech.transcript,
        brightness_db=speech.brightness_db,
        floor=speech.floor,
        tic=speech.tic,
    )
