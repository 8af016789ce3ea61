"""The engine's side of one echo session: plans stage work and reads what the stage answers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
    Speak,
    UserSpeechProgress,
    UserSpeechStarted,
    UserTranscript,
    UserTurnEnded,
)
from omniduplex.engine.duplex.plugin import DuplexModelSessionState
from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.models.echo import messages
from omniduplex.models.echo.messages import AnswerPart, EchoOptions, FromStage, OfTurn, ToStage
from omniduplex.protocol.duplex import DuplexSessionConfig, Usage
from omniduplex.stages.messages import StageInput, StageOutput

# Silence that ends a turn when the client set none: three units.
DEFAULT_SILENCE_MS = 240

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FromStage)
_FORCE_LISTEN = _encoder.encode(messages.ForceListen())


class EchoSessionState(DuplexModelSessionState):
    """One listening request for the whole session, one more request for each answer asked for."""

    def __init__(self, stage_id: int, options: EchoOptions) -> None:
        self._stage_id = stage_id
        self._options = options
        self._listening = ""
        self._answers: dict[str, str] = {}
        """Key of each live answer to the request that carries it."""
        self._asked = 0
        # Commits and clears, and the turns that the ear ended since: what it tells of a turn from
        # before the newest of them is about audio that is sealed or dropped.
        self._generation = 0
        self._turns_known = 0

    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Open the listening request."""
        self._listening = fence.request_id("listen")
        return self.plan_update(fence, config)

    def plan_update(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Tell the ear what ends a turn."""
        detection = config.turn_detection
        return self._tell(
            fence,
            messages.Listen(
                silence_ms=detection.silence_duration_ms if detection else DEFAULT_SILENCE_MS,
                ends_turns=config.decides_turns or self._options.self_start,
                padding_ms=detection.prefix_padding_ms if detection else 0,
            ),
        )

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        """Let the stage hear it."""
        data = _FORCE_LISTEN if force_listen else b""
        message = StageInput(self._listening, epoch=fence.epoch, pcm=pcm, data=data)
        return (Submit(self._stage_id, message),)

    def plan_commit(self, fence: DuplexFence, item_id: str) -> Sequence[StageWork]:
        """Close the utterance; its description comes back as the item's transcript."""
        turns_known = self._turns_known
        self._begin_generation()
        return self._tell(fence, messages.CommitTurn(item_id, turns_known))

    def plan_recognise(
        self, fence: DuplexFence, item_id: str, content_index: int, pcm: bytes
    ) -> Sequence[StageWork]:
        """Have the stage describe audio that is no part of the stream."""
        data = _encoder.encode(messages.HearItem(item_id, content_index))
        message = StageInput(self._listening, epoch=fence.epoch, pcm=pcm, data=data)
        return (Submit(self._stage_id, message),)

    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        """Forget the utterance, and what the ear may just be saying about it."""
        self._begin_generation()
        return self._tell(fence, messages.ClearTurn())

    def plan_overlap(self, fence: DuplexFence, *, active: bool) -> Sequence[StageWork]:
        """Have the ear tell of speech while it goes on."""
        return self._tell(fence, messages.WatchSpeech(active))

    def plan_response(
        self, fence: DuplexFence, key: str, prompt: ResponsePrompt
    ) -> Sequence[StageWork] | None:
        """Ask for an answer to the last words of the user, or of a tool that ran after them."""
        if self._options.self_start:
            return None
        last = next((m for m in reversed(prompt.messages) if m.role in ("user", "tool")), None)
        answer = messages.Answer(
            key=key,
            listening=self._listening,
            text=last.text if last else "",
            from_tool=last is not None and last.role == "tool",
            input_tokens=sum(len(message.text.split()) for message in prompt.messages),
            speak=prompt.speak,
            max_words=prompt.max_tokens,
            tools=messages.tool_names(prompt.tools, prompt.tool_choice),
            must_call=messages.must_call(prompt.tools, prompt.tool_choice),
        )
        self._asked += 1
        request_id = fence.request_id(f"answer{self._asked}")
        self._answers[key] = request_id
        message = StageInput(
            request_id, epoch=fence.epoch, final=True, data=_encoder.encode(answer)
        )
        return (Submit(self._stage_id, message),)

    def plan_cancel(self, fence: DuplexFence, key: str) -> Sequence[StageWork]:
        """Stop that answer; the ear goes on."""
        request_id = self._answers.pop(key, None)
        if request_id is None:
            return ()
        if request_id == self._listening:
            return self._tell(fence, messages.StopAnswer(key))
        return (Abort((request_id,)),)

    def plan_close(self) -> Sequence[StageWork]:
        """Abort the listening request and every live answer."""
        request_ids = dict.fromkeys((self._listening, *self._answers.values()))
        self._listening = ""
        self._answers.clear()
        return (Abort(tuple(request_ids)),)

    def project(self, stage_id: int, output: StageOutput) -> Sequence[Projected]:
        """Events of the ear, and of answers that are still wanted."""
        if output.error:
            return self._fail(output)
        match _decoder.decode(output.data):
            case AnswerPart() as part:
                return self._project_part(part, stage_id, output)
            case _ if output.request_id != self._listening:
                return ()
            case messages.TurnCommitted(item_id, transcript, seconds, content_index):
                return (UserTranscript(item_id, transcript, seconds, content_index),)
            case messages.Listening():
                return (Listen(),)
            case of_turn:
                return self._project_turn(of_turn)

    def _project_turn(self, heard: OfTurn) -> Sequence[Projected]:
        if heard.generation != self._generation:
            return ()
        match heard:
            case messages.SpeechHeard(start_ms):
                return (UserSpeechStarted(start_ms),)
            case messages.SpeechGrew(speech_ms, level_dbfs, transcript):
                return (UserSpeechProgress(speech_ms, level_dbfs, transcript),)
            case messages.TurnHeard(end_ms, transcript):
                self._turns_known += 1
                return (UserTurnEnded(end_ms, transcript),)

    def _begin_generation(self) -> None:
        self._generation += 1
        self._turns_known = 0

    def _tell(self, fence: DuplexFence, message: ToStage) -> Sequence[StageWork]:
        data = _encoder.encode(message)
        work = StageInput(self._listening, epoch=fence.epoch, data=data)
        return (Submit(self._stage_id, work),)

    def _fail(self, output: StageOutput) -> Sequence[Projected]:
        keys = [key for key, request in self._answers.items() if request == output.request_id]
        for key in keys:
            del self._answers[key]
        return [ResponseFailed(key, output.error) for key in keys]

    def _project_part(
        self, part: AnswerPart, stage_id: int, output: StageOutput
    ) -> Sequence[Projected]:
        key = part.key
        events: list[ModelEvent] = []
        if part.opens and output.request_id == self._listening:
            self._answers[key] = output.request_id
            events.append(Speak(key))
        if self._answers.get(key) != output.request_id:
            return ()
        if output.pcm:
            events.append(ResponseAudio(key, output.pcm, output.sample_rate_hz, output.text))
        elif output.text:
            events.append(ResponseText(key, output.text))
        if part.call:
            call = part.call
            events.append(FunctionCall(key, call.call_id, call.name, call.arguments))
        if part.end:
            del self._answers[key]
            usage = Usage.of_text(part.end.input_tokens, part.end.output_tokens)
            events += (
                ResponseMetrics(key, stage_id, output.metrics),
                ResponseEnded(key, part.end.reason, usage),
                Listen(),
            )
        return events
